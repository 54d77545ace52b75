import { languagesOf } from "./diff.ts";
import { tidyDuration } from "./go-duration.ts";
import { fromLocal, toLocal } from "./local-time.ts";
import type { FileItem, LineOrder, Sale, SaleFile, SaleState, Text } from "./types.ts";

/** The most items that a sale may have. */
export const MOST_ITEMS = 50;

/** A sale file as the fields of a form have it: everything is text, as it was typed. */
export interface FormItem {
  key: number; // tells the rows apart while ids are being typed
  id: string;
  title: Record<string, string>;
  stock: string;
  price: string;
}

export interface Form {
  id: string;
  title: Record<string, string>;
  items: FormItem[];
  currency: string;
  opens_at: string; // as a datetime-local field has it
  closes_at: string;
  lobby: string;
  limit: string;
  order: LineOrder;
  rate: string;
  active: string;
  ratio: string;
  turn: string;
  grace: string;
  hold: string;
}

let keys = 0;

export function emptyItem(id = ""): FormItem {
  keys++;
  return { key: keys, id, title: {}, stock: "", price: "" };
}

/** A new sale, with the defaults of a sale file and times that leave room to think: tomorrow, for an hour. */
export function emptyForm(now: number): Form {
  const opens = new Date(now + 24 * 3_600_000);
  opens.setMinutes(0, 0, 0);
  return {
    id: "",
    title: {},
    items: [emptyItem("main")],
    currency: "",
    opens_at: toLocal(opens.toISOString()),
    closes_at: toLocal(new Date(opens.getTime() + 3_600_000).toISOString()),
    lobby: "30m",
    limit: "1",
    order: "fifo",
    rate: "0",
    active: "0",
    ratio: "5",
    turn: "60s",
    grace: "10m",
    hold: "15m",
  };
}

export function formOf(sale: Sale): Form {
  return {
    id: sale.id,
    title: { ...languagesOf(sale.title) },
    items: sale.items.map((item) => ({
      ...emptyItem(item.id),
      title: { ...languagesOf(item.title) },
      stock: String(item.stock),
      price: item.price ? String(item.price) : "",
    })),
    currency: sale.currency ?? "",
    opens_at: toLocal(sale.opens_at),
    closes_at: toLocal(sale.closes_at),
    lobby: tidyDuration(sale.lobby),
    limit: String(sale.limit),
    order: sale.line.order,
    rate: String(sale.line.rate),
    active: String(sale.line.active),
    ratio: String(sale.line.ratio),
    turn: tidyDuration(sale.line.turn),
    grace: tidyDuration(sale.line.grace),
    hold: tidyDuration(sale.hold),
  };
}

/**
 * The form as it is for a sale that has changed since: what was typed stays, and everything else is as the sale has it now.
 * origin is the sale that the form was of.
 */
export function rebase(form: Form, origin: Sale, now: Sale): Form {
  const [was, is] = [formOf(origin), formOf(now)];
  const { title, items, ...plain } = form;
  return {
    ...pick(plain, was, is),
    title: pick(title, was.title, is.title),
    items: rebaseItems(items, was.items, is.items),
  };
}

/** What differs from before as it was typed, everything else as it is. An entry that is absent is an empty one. */
function pick<T extends object>(typed: T, was: { [name in keyof T]?: unknown }, is: Partial<T>): T {
  const picked = { ...is, ...typed };
  for (const name of Object.keys(picked) as (keyof T)[]) {
    if ((typed[name] ?? "") === (was[name] ?? "")) picked[name] = (is[name] ?? "") as T[keyof T];
  }
  return picked;
}

function rebaseItems(typed: FormItem[], was: FormItem[], is: FormItem[]): FormItem[] {
  const of = (items: FormItem[], id: string) => items.find((item) => item.id === id);
  // An id that is typed twice stays twice, and the server says what is wrong with that.
  const fresh = typed.filter((item) => !of(was, item.id) || of(typed, item.id) !== item);
  const kept = is.flatMap((after) => {
    const [before, item] = [of(was, after.id), of(typed, after.id)];
    if (!before) return of(fresh, after.id) ? [] : [after];
    if (!item) return [];
    const { title, key, ...plain } = item;
    return [{ ...pick(plain, before, after), key, title: pick(title, before.title, after.title) }];
  });
  return [...kept, ...fresh];
}

/** The sale file that a form says. before is the sale that is edited, whose access rules no form shows and none may lose. */
export function fileOf(form: Form, before?: Sale): SaleFile {
  const title = textOf(form.title);
  const currency = form.currency.trim();
  return {
    id: form.id.trim(),
    ...(title !== undefined && { title }),
    items: form.items.map(itemOf),
    ...(currency && { currency }),
    opens_at: fromLocal(form.opens_at, before?.opens_at),
    closes_at: fromLocal(form.closes_at, before?.closes_at),
    lobby: form.lobby.trim() || "0",
    limit: numberOf(form.limit),
    line: {
      order: form.order,
      rate: numberOf(form.rate),
      active: numberOf(form.active),
      ratio: numberOf(form.ratio),
      turn: form.turn.trim(),
      grace: form.grace.trim() || "0",
    },
    hold: form.hold.trim() || "0",
    ...(before?.access !== undefined && { access: before.access }),
  };
}

function itemOf(item: FormItem): FileItem {
  const title = textOf(item.title);
  return {
    id: item.id.trim(),
    ...(title !== undefined && { title }),
    stock: numberOf(item.stock),
    ...(item.price.trim() && { price: numberOf(item.price) }),
  };
}

function textOf(texts: Record<string, string>): Text | undefined {
  const filled = Object.entries(texts)
    .map(([language, text]) => [language, text.trim()] as const)
    .filter(([, text]) => text !== "");
  if (filled.length === 0) return undefined;
  const [first] = filled;
  return filled.length === 1 && first?.[0] === "" ? first[1] : Object.fromEntries(filled);
}

/** A number, where one was typed. Anything else goes to the server as it is: it says best what is wrong with it. */
function numberOf(text: string): number {
  const compact = text.trim();
  return /^-?\d+(\.\d+)?$/.test(compact) ? Number(compact) : (compact as unknown as number);
}

/** The fields that a sale cannot change any more, because people may have joined it. */
export function fixedFields(state: SaleState | undefined): ReadonlySet<keyof Form | "price"> {
  if (state === undefined || state === "scheduled") return new Set(["id"]);
  return new Set(["id", "items", "currency", "price", "opens_at", "lobby", "limit", "order"]);
}

/** Says whether an id can be one of a sale or an item. */
export function validId(id: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,62}$/.test(id);
}
