import type { Problem } from "../api.ts";
import type { Difference } from "../diff.ts";
import type { Messages } from "../lang/en.ts";
import type { Language } from "../lang/index.ts";
import { languages } from "../lang/index.ts";
import type { LineOrder, Sale, SaleFile, SaleState } from "../types.ts";

/**
 * Why something was not done, as far as it can be said in the language of the console. The server has titles in it, but
 * details only in English, where they say everything.
 */
export function problemWords({ status, code, detail, title }: Problem, language: Language): string {
  const { t, tag } = language;
  if (detail && tag === "en") return "";
  const held = heldBackWords(detail, language);
  if (held) return title ? t.problem.because(title) + held : held;
  if (title) return detail ? t.problem.because(title) : title;
  if (detail) return "";
  return status === 0 || code === "unreached" ? t.problem.unreached : t.problem.status(status);
}

/** What holds an archive back, as the server says it, with what stands in it. */
const heldBack: [RegExp, (said: string[], language: Language) => string][] = [
  [
    /: it is (\w+); it closes at (\S+),/,
    ([, state, at], { t, f }) => t.held.open(t.state[state as SaleState] ?? state, f.when(Date.parse(at ?? ""))),
  ],
  [
    /: (\d+) orders are not paid; the last one expires at (\S+)$/,
    ([, n, at], { t, f }) => t.held.unpaid(f.number(Number(n)), f.when(Date.parse(at ?? ""))),
  ],
  [
    /: (\d+) orders wait in its outbox, and (\d+) changes/,
    ([, n, m], { t, f }) => t.held.waiting(f.number(Number(n) + Number(m))),
  ],
  [/: (\d+) orders are on their way to the database/, ([, n], { t, f }) => t.held.waiting(f.number(Number(n)))],
  [/: (\d+) of its orders are dead letters/, ([, n], { t, f }) => t.held.dead(f.number(Number(n)))],
  [/: its books do not add up/, (_, { t }) => t.held.books],
  [/changed while it was being archived/, (_, { t }) => t.held.changed],
];

/** Why a sale is not archived, in the language of the console; undefined where the sentence is not known. */
export function heldBackWords(sentence: string, language: Language): string | undefined {
  for (const [pattern, words] of heldBack) {
    const said = /archived/.test(sentence) && pattern.exec(sentence);
    if (said) return words(said, language);
  }
  return undefined;
}

/** The sentences of the server about what it could not read. */
const troubles: Record<string, keyof Messages["trouble"]> = {
  "this node has not read the line of the sale": "line",
  "the database cannot be asked": "database",
  "Redis cannot be asked: the line is as it was read last, and other nodes are not known": "redis",
  "the broker cannot be asked": "broker",
};

/** Such a sentence in the language of the console; undefined where it is not known. */
export function troubleWords(sentence: string, { t }: Language): string | undefined {
  const key = troubles[sentence];
  return key && t.trouble[key];
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
