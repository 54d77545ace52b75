import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useTitle } from "../../title.ts";
import { type Api, type Problem, problemOf } from "../api.ts";
import { Checker, type Verdict } from "../check.ts";
import { differences } from "../diff.ts";
import { emptyForm, type Form, fileOf, fixedFields, formOf, rebase } from "../form.ts";
import { language } from "../lang/index.ts";
import type { Sale, SaleFile } from "../types.ts";
import { Differences } from "./log.tsx";
import { Panel, ProblemLine, ProblemText, useEvery } from "./parts.tsx";
import { SettingsFields } from "./settings-fields.tsx";

/** A draft outlives a look at another part of the page: what was typed for minutes must not be lost by one click. */
const drafts = new Map<string, Draft>();

/** What is typed, and the sale that it is of; a new one is of none. */
interface Draft {
  form: Form;
  origin: Sale | undefined;
}

const AGAIN_MS = 3_000;

/** Figures of a node that has not read what was saved come for a second or two, and no longer than this. */
const HOLD_MS = 10_000;

/** Makes a sale. */
export function NewSalePage({ api }: { api: Api }) {
  const { t } = language.value;
  const [taken, setTaken] = useState<ReadonlySet<string>>(); // undefined = not known yet
  const [problem, setProblem] = useState<Problem>();
  // Without the list the server would take the file as a change of the sale that has its id: so that list is needed.
  const read = async () => {
    if (taken) return;
    try {
      const { sales } = await api.sales();
      setTaken(new Set(sales.map(({ id }) => id)));
      setProblem(undefined);
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  useEvery(AGAIN_MS, read, api);
  useTitle(`${t.newSale} · ${t.console}`);
  return (
    <div class="page">
      <div class="page-head">
        <h1>{t.newSale}</h1>
        <a class="button second" href="/admin" onClick={() => drafts.delete("")}>
          {t.cancel}
        </a>
      </div>
      <ProblemLine problem={problem} />
      <Settings api={api} taken={taken} onSaved={({ id }) => location.assign(`/admin/s/${id}`)} />
    </div>
  );
}

/** Changes the settings of a sale. */
export function SettingsPage({ api, sale, onSaved }: { api: Api; sale: Sale; onSaved: () => void }) {
  return <Settings api={api} sale={sale} taken={none} onSaved={onSaved} />;
}

const none: ReadonlySet<string> = new Set();

interface Props {
  api: Pick<Api, "put" | "sale">;
  sale?: Sale; // as it is now; absent = a new one is made
  taken: ReadonlySet<string> | undefined; // undefined = not known yet
  onSaved: (sale: Sale) => void;
}

export function Settings({ api, sale, taken, onSaved }: Props) {
  const { t } = language.value;
  const key = sale?.id ?? "";
  const [draft, setDraft] = useState<Draft>(() => drafts.get(key) ?? { form: startOf(sale), origin: sale });
  const [verdict, setVerdict] = useState<Verdict>({ kind: "unchanged" });
  const [saving, setSaving] = useState(false);
  const [saved, setSaved] = useState(false);
  const [held, setHeld] = useState<SaleFile>(); // what was saved, until it comes back with the figures
  const [problem, setProblem] = useState<Problem>();
  const [unknown, setUnknown] = useState(false); // whether the id is free could not be asked
  const checker = useMemo(() => new Checker(api, setVerdict), [api]);

  const { form, origin } = draft;
  const file = useMemo(() => fileOf(form, origin), [form, origin]);
  const unchanged = origin !== undefined && same(file, fileOf(formOf(origin), origin));
  useEffect(() => {
    checker.check(file, unchanged, taken);
    return () => checker.stop();
  }, [checker, file, unchanged, taken]);

  // Another part of the page keeps the draft; leaving the page does not, so that is asked about.
  const touched = useRef(drafts.has(key));
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent) => {
      if (touched.current) event.preventDefault();
    };
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, []);

  // What nobody touched follows the sale, or saving it later would take back what somebody else changed meanwhile. Figures
  // from before a save would take back what was just saved, so they are waited out.
  useEffect(() => {
    if (!sale || !origin) return;
    const now = fileOf(formOf(sale), sale);
    if (held) {
      if (same(now, held)) setHeld(undefined);
      return;
    }
    if (same(now, fileOf(formOf(origin), origin))) return;
    const next = { form: rebase(form, origin, sale), origin: sale };
    if (touched.current) drafts.set(key, next);
    setDraft(next);
    setSaved(false);
  }, [sale, form, origin, held, key]);
  useEffect(() => {
    if (!held) return;
    const timer = setTimeout(() => setHeld(undefined), HOLD_MS);
    return () => clearTimeout(timer);
  }, [held]);

  const change = (next: Form) => {
    const draft = { form: next, origin };
    drafts.set(key, draft);
    setDraft(draft);
    touched.current = true;
    setSaved(false);
    setProblem(undefined);
  };
  const save = async (event: Event) => {
    event.preventDefault();
    if (verdict.kind !== "sound") return;
    setSaving(true);
    setProblem(undefined);
    setUnknown(false);
    try {
      if (!sale && (await exists(api, file.id))) {
        setVerdict({ kind: "taken" });
        setSaving(false);
        return;
      }
    } catch (error) {
      setUnknown(true);
      setProblem(problemOf(error));
      setSaving(false);
      return;
    }
    try {
      const after = await api.put(file, false);
      drafts.delete(key);
      touched.current = false;
      setDraft({ form: formOf(after), origin: after });
      setHeld(fileOf(formOf(after), after));
      setSaved(true);
      onSaved(after);
    } catch (error) {
      setProblem(problemOf(error));
    }
    setSaving(false);
  };
  const list = origin && !unchanged ? differences(fileOf(formOf(origin), origin), file) : [];
  return (
    <form class="settings" onSubmit={save} noValidate>
      <SettingsFields
        form={form}
        fixed={sale ? fixedFields(sale.state) : new Set()}
        change={(part) => change({ ...form, ...part })}
      />
      <div class="settings-side">
        <Panel title={sale ? t.form.changes : t.newSale} class="check">
          {sale?.access !== undefined && <p class="soft">{t.form.accessKept}</p>}
          {list.length > 0 && <Differences list={list} currency={form.currency} />}
          <p role="status" class={`verdict ${verdict.kind}`}>
            {saved && verdict.kind === "unchanged" ? t.form.saved : verdictWords(verdict)}
          </p>
          <ProblemLine problem={problem} title={unknown ? t.form.idUnknown : t.refusedTitle} />
          <div class="row">
            <button type="submit" class="button" disabled={saving || verdict.kind !== "sound"}>
              {saving ? t.form.saving : sale ? t.form.save : t.form.create}
            </button>
            {origin && !unchanged && (
              <button
                type="button"
                class="button second"
                onClick={() => {
                  change(formOf(origin));
                  drafts.delete(key);
                  touched.current = false;
                }}
              >
                {t.form.reset}
              </button>
            )}
          </div>
        </Panel>
      </div>
    </form>
  );
}

/**
 * Says whether there is a sale with an id. Only then is a file not a new sale but a change of that one, so no answer is no
 * no.
 */
async function exists(api: Pick<Api, "sale">, id: string): Promise<boolean> {
  try {
    await api.sale(id);
    return true;
  } catch (error) {
    if (problemOf(error).status === 404) return false;
    throw error;
  }
}

function startOf(sale: Sale | undefined): Form {
  return sale ? formOf(sale) : emptyForm(Date.now());
}

function same(a: SaleFile, b: SaleFile): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function verdictWords(verdict: Verdict): ComponentChildren {
  const { t } = language.value;
  switch (verdict.kind) {
    case "unchanged":
      return t.form.unchanged;
    case "checking":
      return t.form.checking;
    case "sound":
      return t.form.sound;
    case "id":
      return t.form.idFirst;
    case "taken":
      return t.form.idTaken;
    case "problem":
      return <ProblemText problem={verdict.problem} />;
  }
}
