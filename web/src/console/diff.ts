import type { FileItem, SaleFile, Text } from "./types.ts";

/** The settings of a sale that a change may touch. */
export type Field =
  | "title"
  | "currency"
  | "opens_at"
  | "closes_at"
  | "lobby"
  | "limit"
  | "order"
  | "rate"
  | "active"
  | "ratio"
  | "turn"
  | "grace"
  | "hold"
  | "access"
  | "stock"
  | "price"
  | "items";

/** One field before and after; undefined = it was not there. */
export interface Difference {
  field: Field;
  item?: string; // of which item
  language?: string; // of a title
  before: string | number | undefined;
  after: string | number | undefined;
}

const plain = ["currency", "opens_at", "closes_at", "lobby", "limit", "hold"] as const;
const line = ["order", "rate", "active", "ratio", "turn", "grace"] as const;

/** What a change changed, in the order of a sale file. Of a sale that was made or removed it is everything. */
export function differences(before: SaleFile | null, after: SaleFile | null): Difference[] {
  const found: Difference[] = [];
  const note = (difference: Difference) => {
    if (difference.before !== difference.after) found.push(difference);
  };
  titles(before?.title, after?.title, undefined, note);
  for (const item of allItems(before, after)) {
    const was = before?.items.find(({ id }) => id === item);
    const is = after?.items.find(({ id }) => id === item);
    note({ field: "stock", item, before: was?.stock, after: is?.stock });
    titles(was?.title, is?.title, item, note);
    note({ field: "price", item, before: was?.price || undefined, after: is?.price || undefined });
  }
  if (before && after) note({ field: "items", before: sequence(before, after), after: sequence(after, before) });
  for (const field of plain) note({ field, before: same(field, before?.[field]), after: same(field, after?.[field]) });
  for (const field of line) note({ field, before: before?.line[field], after: after?.line[field] });
  note({ field: "access", before: packed(before?.access), after: packed(after?.access) });
  return found;
}

/** One moment may be written in several ways, and an empty field is none. */
function same(field: string, value: string | number | undefined): string | number | undefined {
  if (!field.endsWith("_at") || typeof value !== "string") return value || (value === 0 ? 0 : undefined);
  const at = Date.parse(value);
  return Number.isNaN(at) ? value : new Date(at).toISOString();
}

function titles(
  before: Text | undefined,
  after: Text | undefined,
  item: string | undefined,
  note: (d: Difference) => void,
) {
  const [was, is] = [languagesOf(before), languagesOf(after)];
  for (const language of new Set([...Object.keys(was), ...Object.keys(is)])) {
    note({
      field: "title",
      ...(item !== undefined && { item }),
      ...(language !== "" && { language }),
      before: was[language],
      after: is[language],
    });
  }
}

/** A text by language; one that is for all languages has the key "". */
export function languagesOf(text: Text | undefined): Record<string, string> {
  if (text === undefined || text === null) return {};
  return typeof text === "string" ? { "": text } : text;
}

function allItems(before: SaleFile | null, after: SaleFile | null): string[] {
  const ids = (file: SaleFile | null) => file?.items.map(({ id }: FileItem) => id) ?? [];
  return [...new Set([...ids(before), ...ids(after)])];
}

/** The order of the items that both have: what was added or removed is told by its stock. */
function sequence(file: SaleFile, other: SaleFile): string {
  const both = file.items.filter(({ id }) => other.items.some((item) => item.id === id));
  return both.map(({ id }) => id).join(", ");
}

function packed(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : JSON.stringify(value);
}
