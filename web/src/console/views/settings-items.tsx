import type { FormItem } from "../form.ts";
import { language } from "../lang/index.ts";
import { type Fixed, TextField, Titles } from "./settings-fields.tsx";

interface Props {
  item: FormItem;
  number: number;
  currency: string;
  fixed: Fixed;
  change: (item: FormItem) => void;
  remove: (() => void) | undefined; // absent = it has to stay
}

/** One item of a sale. */
export function ItemFields({ item, number, currency, fixed, change, remove }: Props) {
  const { t, f } = language.value;
  const name = t.form.item(f.number(number));
  return (
    <fieldset class="item">
      <legend>{name}</legend>
      <div class="fields">
        <TextField
          label={t.form.itemId}
          value={item.id}
          disabled={fixed.has("items")}
          code
          onInput={(id) => change({ ...item, id })}
        />
        <TextField label={t.form.stock} value={item.stock} number onInput={(stock) => change({ ...item, stock })} />
        <TextField
          label={t.form.price}
          hint={priceHint(item.price, currency)}
          value={item.price}
          disabled={fixed.has("price")}
          number
          onInput={(price) => change({ ...item, price })}
        />
        <Titles label={t.form.title} title={item.title} change={(title) => change({ ...item, title })} />
      </div>
      {remove && (
        <button type="button" class="link remove" aria-label={t.form.removeItem(item.id || name)} onClick={remove}>
          {t.form.remove}
        </button>
      )}
    </fieldset>
  );
}

/** Minor units are easily off by a hundred, so what they come to stands beside them. */
function priceHint(price: string, currency: string): string {
  const { f } = language.value;
  return /^\d+$/.test(price.trim()) && /^[A-Z]{3}$/.test(currency.trim())
    ? f.price(Number(price), currency.trim())
    : "";
}
