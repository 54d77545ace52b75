const units = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
type Unit = keyof typeof units;

/** A length as Go writes it ("1h30m0s", "250ms", "0s") in milliseconds; undefined when it is not one. */
export function parseDuration(text: string): number | undefined {
  const compact = text.trim();
  if (compact === "0") return 0;
  if (!/^(\d+(\.\d+)?(h|ms|m|s))+$/.test(compact)) return undefined;
  let sum = 0;
  for (const [, n, unit] of compact.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g)) sum += Number(n) * units[unit as Unit];
  return sum;
}

/** The same length as short as it can be written: "30m0s" becomes "30m". What is no length stays as it is. */
export function tidyDuration(text: string): string {
  const ms = parseDuration(text);
  if (ms === undefined) return text;
  if (ms === 0) return "0";
  let left = ms;
  let out = "";
  for (const unit of ["h", "m", "s", "ms"] as const) {
    const n = Math.floor(left / units[unit]);
    if (n > 0) out += `${n}${unit}`;
    left -= n * units[unit];
  }
  return out || text; // shorter than a millisecond
}
