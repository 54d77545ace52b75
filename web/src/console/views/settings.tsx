import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Api, type Problem, problemOf } from "../api.ts";
import { Checker, type Verdict } from "../check.ts";
import { differences } from "../diff.ts";
import { emptyForm, type Form, fileOf, fixedFields, formOf } from "../form.ts";
import { language } from "../lang/index.ts";
import type { Sale, SaleFile } from "../types.ts";
import { Differences } from "./log.tsx";
import { Panel, ProblemLine, useTitle } from "./parts.tsx";
import { SettingsFields } from "./settings-fields.tsx";
import { problemWords } from "./words.ts";

/** A draft outlives a look at another part of the page: what was typed for minutes must not be lost by one click. */
const drafts = new Map<string, { form: Form; origin: Sale }>();

/** Makes a sale. */
export function NewSalePage({ api }: { api: Api }) {
  const { t } = language.value;
  const [taken, setTaken] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    // Without the list the server would take the file as a change of the sale that has its id: so that list is needed.
    api.sales().then(
      (sales) => setTaken(new Set(sales.map(({ id }) => id))),
      () => {},
    );
  }, [api]);
  useTitle(`${t.newSale} · ${t.console}`);
  return (
    <div class="page">
      <div class="page-head">
        <h1>{t.newSale}</h1>
        <a class="button second" href="/admin">
          {t.cancel}
        </a>
      </div>
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
  api: Pick<Api, "put">;
  sale?: Sale; // as it is now; absent = a new one is made
  taken: ReadonlySet<string>;
  onSaved: (sale: Sale) => void;
}

export function Settings({ api, sale, taken, onSaved }: Props) {
  const { t } = language.value;
  const key = sale?.id ?? "";
  const [draft, setDraft] = useState(() => drafts.get(key) ?? { form: startOf(sale), origin: sale });
  const [verdict, setVerdict] = useState<Verdict>({ kind: "unchanged" });
  const [saving, setSaving] = useState(false);
  const [saved, setSaved] = useState(false);
  const [problem, setProblem] = useState<Problem>();
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

  // A form that nobody touched follows the sale, or saving it later would take back what somebody else changed meanwhile.
  useEffect(() => {
    if (!sale || !origin || touched.current || saved) return;
    if (!same(fileOf(formOf(sale), sale), fileOf(formOf(origin), origin)))
      setDraft({ form: formOf(sale), origin: sale });
  }, [sale, origin, saved]);

  const change = (next: Form, from = origin) => {
    const draft = { form: next, origin: from };
    if (from) drafts.set(key, { form: next, origin: from });
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
    try {
      const after = await api.put(file, false);
      drafts.delete(key);
      touched.current = false;
      setDraft({ form: formOf(after), origin: after });
      setSaved(true);
      onSaved(after);
    } catch (error) {
      setProblem(problemOf(error));
    }
    setSaving(false);
  };
  const list = sale && !unchanged ? differences(fileOf(formOf(sale), sale), file) : [];
  return (
    <form class="settings" onSubmit={save} noValidate>
      <SettingsFields
        form={form}
        origin={origin}
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
          <ProblemLine problem={problem} title={t.refusedTitle} />
          <div class="row">
            <button type="submit" class="button" disabled={saving || verdict.kind !== "sound"}>
              {saving ? t.form.saving : sale ? t.form.save : t.form.create}
            </button>
            {sale && !unchanged && (
              <button
                type="button"
                class="button second"
                onClick={() => {
                  change(formOf(sale), sale);
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

function startOf(sale: Sale | undefined): Form {
  return sale ? formOf(sale) : emptyForm(Date.now());
}

function same(a: SaleFile, b: SaleFile): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function verdictWords(verdict: Verdict): string {
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
      return problemWords(verdict.problem, language.value);
  }
}
