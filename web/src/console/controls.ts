import type { LogEntry, Move, SaleState } from "./types.ts";

/** Everything that an operator can do to a sale without editing its file. */
export const controls = ["open", "pause", "resume", "close", "line", "extend", "stock", "recover", "archive"] as const;
export type Control = (typeof controls)[number];

export function isMove(control: Control): control is Move {
  return control !== "line" && control !== "extend" && control !== "stock";
}

/** What makes sense in each state. A closed sale opens again when its closing time is moved into the future. */
const sensible: Record<SaleState, readonly Control[]> = {
  scheduled: ["open", "pause", "resume", "close", "line", "extend", "stock"],
  lobby: ["open", "pause", "resume", "close", "line", "extend", "stock", "recover"],
  open: ["pause", "close", "line", "extend", "stock", "recover"],
  paused: ["resume", "close", "line", "extend", "stock", "recover"],
  closed: ["extend", "recover", "archive"],
  recovering: ["recover"],
};

/**
 * The controls that are enabled. A sale can be paused before it opens, and its state does not say so: then the newest word
 * in the log does, and where that is not known, since more of the log was not read, both stay possible.
 */
export function enabled(
  state: SaleState | undefined,
  log: readonly LogEntry[] | undefined,
  more = false,
): ReadonlySet<Control> {
  const set = new Set(state ? sensible[state] : []);
  if ((state === "scheduled" || state === "lobby") && log) {
    const last = log.find(({ action }) => action === "pause" || action === "resume");
    if (last || !more) set.delete(last?.action === "pause" ? "pause" : "resume");
  }
  return set;
}
