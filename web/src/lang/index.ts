import { Cell } from "../cell.ts";
import { Format } from "../format.ts";
import type { Messages } from "./en.ts";

// A language is a file beside this one, named by its tag, that exports its messages under that name. A shopper's phone
// fetches the one that it shows.
const files = import.meta.glob<Record<string, Messages>>(["./*.ts", "!./index.ts"]);

/** The tags of all languages. */
export const tags: readonly string[] = Object.keys(files)
  .map((path) => path.slice(2, -3))
  .sort();

export interface Language {
  tag: string;
  t: Messages;
  f: Format;
}

/** Fetches a language. Fails when its file cannot be fetched. */
export async function speak(tag: string): Promise<Language> {
  const file = await files[`./${tag}.ts`]?.();
  if (!file?.[tag]) throw new Error(`there is no language ${tag}`);
  return { tag, t: file[tag], f: new Format(tag) };
}

/** The language of the page. Nothing is shown before there is one, and everything is drawn again when it changes. */
export const language = new Cell<Language>(undefined as unknown as Language);

/** The name that those who speak a language give it. */
export function nameOf(tag: string): string {
  return new Intl.DisplayNames(tag, { type: "language" }).of(tag) ?? tag;
}
