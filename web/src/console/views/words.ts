import type { Problem } from "../api.ts";
import type { Difference } from "../diff.ts";
import type { Language } from "../lang/index.ts";
import { languages } from "../lang/index.ts";
import type { LineOrder, Sale, SaleFile } from "../types.ts";

/** Why something was not done, in one sentence. */
export function problemWords({ status, code, detail }: Problem, { t }: Language): string {
  if (detail) return detail;
  return status === 0 || code === "unreached" ? t.problem.unreached : t.problem.status(status);
}

export function titleOf(sale: SaleFile, { f }: Language): string {
  return f.text(sale.title, sale.id);
}

export function itemTitle(sale: SaleFile, id: string, { f }: Language): string {
  return f.text(sale.items.find((item) => item.id === id)?.title, id);
}

/** Units taken of all units; undefined where what is left is not known. */
export function takenOf(sale: Sale): { taken: number | undefined; total: number } {
  const total = sale.items.reduce((sum, { stock }) => sum + stock, 0);
  const known = sale.items.every(({ left }) => left !== undefined);
  const left = sale.items.reduce((sum, item) => sum + (item.left ?? 0), 0);
  return { taken: known ? total - left : undefined, total };
}

/** What a difference is of: "Stock (black)", "Title (Chinese)". */
export function fieldWords({ field, item, language }: Difference, { t }: Language): string {
  const of = [item, language && (languages[language]?.name ?? language)].filter(Boolean).join(", ");
  return of ? t.fieldOf(t.field[field], of) : t.field[field];
}

/** A value of a setting, as people write it. */
export function valueWords(
  field: Difference["field"],
  value: string | number | undefined,
  currency: string | undefined,
  { t, f }: Language,
): string {
  if (value === undefined || value === "") return t.nothing;
  if (typeof value === "number") {
    if (field === "price") return currency ? f.price(value, currency) : f.number(value);
    return value === 0 && (field === "rate" || field === "active" || field === "ratio") ? t.noCap : f.number(value);
  }
  switch (field) {
    case "opens_at":
    case "closes_at": {
      const at = Date.parse(value);
      return Number.isNaN(at) ? value : f.when(at);
    }
    case "lobby":
    case "turn":
    case "grace":
    case "hold":
      return f.duration(value);
    case "order":
      return t.form.orderOf[value as LineOrder] ?? value;
  }
  return value;
}
