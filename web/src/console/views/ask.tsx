import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type Problem, problemOf } from "../api.ts";
import { type Control, isMove } from "../controls.ts";
import { language } from "../lang/index.ts";
import { toLocal } from "../local-time.ts";
import type { Sale } from "../types.ts";
import { ProblemLine } from "./parts.tsx";
import { itemTitle } from "./words.ts";

interface Props {
  control: Control;
  sale: Sale;
  act: (asked: Sale, fields: FormData) => Promise<void>;
  onClose: () => void;
}

/** Says what will happen, asks for what it needs, does it, and shows the server's answer when that is no. */
export function Ask({ control, sale, act, onClose }: Props) {
  const { t } = language.value;
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  // What the sale was when it was asked: figures that come in meanwhile must not change what is being typed.
  const [asked] = useState(sale);
  // Until the server has answered the dialog stays, or nobody would read that it said no.
  const underWay = useRef(false);
  const closed = () => {
    // A browser may ask only once whether Escape may close a dialog.
    if (underWay.current) dialog.current?.showModal();
    else onClose();
  };
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    setBusy(true);
    underWay.current = true;
    setProblem(undefined);
    try {
      await act(asked, fields);
      underWay.current = false;
      dialog.current?.close();
    } catch (error) {
      underWay.current = false;
      setProblem(problemOf(error));
    }
    setBusy(false);
  };
  return (
    <dialog
      ref={dialog}
      class="ask"
      aria-labelledby="ask"
      aria-describedby="ask-more"
      onCancel={(event) => underWay.current && event.preventDefault()}
      onClose={closed}
    >
      <form onSubmit={submit}>
        <h2 id="ask">{t.ask[control]}</h2>
        <p id="ask-more">{consequence(control, sale)}</p>
        {!isMove(control) && <Fields control={control} sale={asked} />}
        <ProblemLine problem={problem} title={t.refusedTitle} />
        <div class="row">
          <button type="button" class="button second" disabled={busy} onClick={() => dialog.current?.close()}>
            {t.cancel}
          </button>
          <button
            type="submit"
            class={control === "close" || control === "archive" ? "button danger" : "button"}
            disabled={busy}
          >
            {busy ? t.doing : t.do[control]}
          </button>
        </div>
      </form>
    </dialog>
  );
}

function consequence(control: Control, sale: Sale): string {
  const { t, f } = language.value;
  const before = sale.state === "scheduled" || sale.state === "lobby";
  switch (control) {
    case "open":
      return t.askMore.open(f.when(Date.parse(sale.opens_at)));
    case "close":
      return t.askMore.close(t.people(sale.waiting ?? 0, f.number(sale.waiting ?? 0)));
    case "pause":
      return before ? t.askMore.pauseBefore : t.askMore.pause;
    case "resume":
      return before ? t.askMore.resumeBefore : t.askMore.resume;
    case "extend":
      return sale.state === "closed" ? t.askMore.extendClosed : t.askMore.extend;
  }
  return t.askMore[control];
}

function Fields({ control, sale }: { control: Control; sale: Sale }) {
  const { t, f } = language.value;
  if (control === "extend") {
    return (
      <label class="field">
        <span>{t.form.closes}</span>
        <input name="closes_at" type="datetime-local" step="1" required defaultValue={toLocal(sale.closes_at)} />
      </label>
    );
  }
  if (control === "line") {
    return (
      <div class="fields">
        <NumberField name="rate" label={t.form.rate} hint={t.form.rateHint} value={sale.line.rate} />
        <NumberField name="active" label={t.form.active} hint={t.form.activeHint} value={sale.line.active} />
        <NumberField name="ratio" label={t.form.ratio} hint={t.form.ratioHint} value={sale.line.ratio} step="any" />
      </div>
    );
  }
  return (
    <div class="fields">
      {sale.items.map(({ id, stock, left }) => (
        <NumberField
          key={id}
          name={`total ${id}`}
          label={itemTitle(sale, id, language.value)}
          hint={left === undefined ? "" : t.takenSoFar(f.number(stock - left))}
          value={stock}
        />
      ))}
    </div>
  );
}

function NumberField(props: { name: string; label: string; hint: string; value: number; step?: string }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <input
        id={id}
        name={props.name}
        type="number"
        inputMode="decimal"
        min="0"
        step={props.step ?? "1"}
        required
        defaultValue={String(props.value)}
        aria-describedby={`${id}-hint`}
      />
      <small id={`${id}-hint`}>{props.hint}</small>
    </div>
  );
}
