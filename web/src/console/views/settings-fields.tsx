import { useId } from "preact/hooks";
import { emptyItem, type Form, type FormItem, MOST_ITEMS } from "../form.ts";
import { language, languages } from "../lang/index.ts";
import { zone } from "../local-time.ts";
import type { LineOrder } from "../types.ts";
import { ItemFields } from "./settings-items.tsx";

export type Fixed = ReadonlySet<keyof Form | "price">;

interface Props {
  form: Form;
  fixed: Fixed;
  change: (part: Partial<Form>) => void;
}

/** All fields of a sale file but its access rules. */
export function SettingsFields({ form, fixed, change }: Props) {
  const { t, f } = language.value;
  const text = (name: keyof Form) => ({
    value: form[name] as string,
    disabled: fixed.has(name),
    onInput: (value: string) => change({ [name]: value }),
  });
  const setItem = (item: FormItem) => change({ items: form.items.map((old) => (old.key === item.key ? item : old)) });
  return (
    <div class="settings-fields">
      {fixed.size > 1 && <p class="banner">{t.form.fixed}</p>}
      <fieldset class="panel">
        <legend>{t.form.what}</legend>
        <div class="fields">
          <TextField label={t.form.id} hint={t.form.idHint} {...text("id")} code />
          <TextField label={t.form.currency} hint={t.form.currencyHint} {...text("currency")} code />
          <Titles label={t.form.title} title={form.title} change={(title) => change({ title })} />
        </div>
        {form.items.map((item, i) => (
          <ItemFields
            key={item.key}
            item={item}
            number={i + 1}
            currency={form.currency}
            fixed={fixed}
            change={setItem}
            remove={
              form.items.length > 1 && !fixed.has("items")
                ? () => change({ items: form.items.filter(({ key }) => key !== item.key) })
                : undefined
            }
          />
        ))}
        <div class="row">
          <button
            type="button"
            class="button second small"
            disabled={fixed.has("items") || form.items.length >= MOST_ITEMS}
            onClick={() => change({ items: [...form.items, emptyItem()] })}
          >
            {t.form.add}
          </button>
          <span class="soft">{t.form.itemCount(f.number(form.items.length), f.number(MOST_ITEMS))}</span>
        </div>
      </fieldset>
      <fieldset class="panel">
        <legend>{t.form.when}</legend>
        <p class="soft">{t.zone(zone())}</p>
        <div class="fields times">
          <TextField label={t.form.opens} {...text("opens_at")} time />
          <TextField label={t.form.closes} {...text("closes_at")} time />
          <TextField label={t.form.lobby} hint={t.form.lobbyHint} {...text("lobby")} code />
        </div>
      </fieldset>
      <fieldset class="panel">
        <legend>{t.form.line}</legend>
        <p class="soft">{t.form.duration}</p>
        <div class="fields">
          <OrderField order={form.order} disabled={fixed.has("order")} change={(order) => change({ order })} />
          <TextField label={t.form.rate} hint={t.form.rateHint} {...text("rate")} number />
          <TextField label={t.form.active} hint={t.form.activeHint} {...text("active")} number />
          <TextField label={t.form.ratio} hint={t.form.ratioHint} {...text("ratio")} number />
          <TextField label={t.form.turn} hint={t.form.turnHint} {...text("turn")} code />
          <TextField label={t.form.grace} hint={t.form.graceHint} {...text("grace")} code />
        </div>
      </fieldset>
      <fieldset class="panel">
        <legend>{t.form.orders}</legend>
        <div class="fields">
          <TextField label={t.form.limit} hint={t.form.limitHint} {...text("limit")} number />
          <TextField label={t.form.hold} hint={t.form.holdHint} {...text("hold")} code />
        </div>
      </fieldset>
    </div>
  );
}

function OrderField(props: { order: LineOrder; disabled: boolean; change: (order: LineOrder) => void }) {
  const { t } = language.value;
  return (
    <label class="field">
      <span>{t.form.order}</span>
      <select
        value={props.order}
        disabled={props.disabled}
        onChange={(event) => props.change(event.currentTarget.value as LineOrder)}
      >
        {Object.entries(t.form.orderOf).map(([order, words]) => (
          <option key={order} value={order}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A text in every language of the console, and in those that it has besides. */
export function Titles(props: {
  label: string;
  title: Record<string, string>;
  change: (title: Record<string, string>) => void;
}) {
  const { t } = language.value;
  const { title, change } = props;
  const all = [...new Set([...Object.keys(languages), ...Object.keys(title)])];
  return (
    <>
      {all.map((tag) => (
        <TextField
          key={tag}
          label={t.fieldOf(props.label, tag === "" ? t.form.anyLanguage : (languages[tag]?.name ?? tag))}
          {...(tag !== "" && { lang: tag })}
          value={title[tag] ?? ""}
          onInput={(value) => change({ ...title, [tag]: value })}
        />
      ))}
    </>
  );
}

/** Everything is a text field for the browser: what is wrong with an entry, the server says in a sentence. */
export function TextField(props: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: string;
  disabled?: boolean;
  time?: boolean;
  code?: boolean;
  number?: boolean;
  lang?: string;
}) {
  const id = useId();
  const field = {
    id,
    class: props.code ? "code" : "",
    value: props.value,
    disabled: props.disabled ?? false,
    autocomplete: "off" as const,
    spellcheck: false,
    onInput: (event: { currentTarget: HTMLInputElement }) => props.onInput(event.currentTarget.value),
    ...(props.lang && { lang: props.lang }),
    ...(props.hint && { "aria-describedby": `${id}-hint` }),
  };
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.time ? (
        <input {...field} type="datetime-local" step="1" />
      ) : (
        <input {...field} type="text" {...(props.number && { inputMode: "decimal" as const })} />
      )}
      {props.hint && <small id={`${id}-hint`}>{props.hint}</small>}
    </div>
  );
}
