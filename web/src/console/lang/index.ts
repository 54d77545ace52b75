import { signal } from "@preact/signals";
import { Figures } from "../figures.ts";
import type { Messages } from "./en.ts";

// A language is a file beside this one, named by its tag, that exports its messages under that name.
const files = import.meta.glob<Record<string, Messages>>(["./*.ts", "!./index.ts"], { eager: true });

/** All languages by tag. */
export const languages: Record<string, Messages> = Object.fromEntries(
  Object.entries(files).map(([path, file]) => {
    const tag = path.slice(2, -3);
    return [tag, file[tag] as Messages];
  }),
);

export interface Language {
  tag: string;
  t: Messages;
  f: Figures;
}

export function speak(tag: string): Language {
  return { tag, t: languages[tag] as Messages, f: new Figures(tag) };
}

/** The language of the console, with everything that is written by it. */
export const language = signal(speak("en"));
