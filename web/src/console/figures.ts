import { Format } from "../format.ts";
import { parseDuration } from "./go-duration.ts";

/** What the console writes beside numbers and prices: rates, parts, lengths and exact times. */
export class Figures extends Format {
  /** A whole number, or a dash where it is not known. */
  count(n: number | null | undefined): string {
    return n === null || n === undefined ? "–" : this.number(Math.round(n));
  }

  /** How many a second: slow ones with a decimal, since 0.4 is not 0. */
  rate(n: number | null | undefined): string {
    if (n === null || n === undefined) return "–";
    return new Intl.NumberFormat(this.lang, { maximumFractionDigits: n < 10 ? 1 : 0 }).format(n);
  }

  /** A number for the axis of a chart. */
  short(n: number): string {
    return new Intl.NumberFormat(this.lang, { notation: "compact", maximumFractionDigits: 1 }).format(n);
  }

  percent(part: number): string {
    const digits = part > 0 && part < 0.1 ? 1 : 0;
    const shown = part < 1 ? Math.min(part, 0.99) : part; // all is said only of all
    return new Intl.NumberFormat(this.lang, { style: "percent", maximumFractionDigits: digits }).format(shown);
  }

  /** The time of day, to the second. */
  time(at: number): string {
    return new Intl.DateTimeFormat(this.lang, {
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
    }).format(at);
  }

  hour(at: number): string {
    return new Intl.DateTimeFormat(this.lang, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(at);
  }

  /** A moment as short as it is clear: without the day if that is today's, without the year if that is this year's. */
  when(at: number, seconds = true): string {
    const [then, today] = [new Date(at), new Date()];
    if (then.toDateString() === today.toDateString()) return seconds ? this.time(at) : this.hour(at);
    return new Intl.DateTimeFormat(this.lang, {
      ...(then.getFullYear() !== today.getFullYear() && { year: "numeric" }),
      month: "short",
      day: "numeric",
      hour: "2-digit",
      minute: "2-digit",
      ...(seconds && { second: "2-digit" }),
      hourCycle: "h23",
    }).format(at);
  }

  /** Day and time in full, to the second. */
  dateTime(at: number): string {
    return new Intl.DateTimeFormat(this.lang, {
      year: "numeric",
      month: "short",
      day: "numeric",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
    }).format(at);
  }

  /** A length in its largest unit: 5 s, 12 min, 3 h, 2 days. */
  span(ms: number, unitDisplay: "short" | "narrow" = "short"): string {
    const s = Math.max(0, ms) / 1000;
    const [n, unit] =
      s < 120 ? [s, "second"] : s < 7200 ? [s / 60, "minute"] : s < 172_800 ? [s / 3600, "hour"] : [s / 86_400, "day"];
    return new Intl.NumberFormat(this.lang, { style: "unit", unit: unit as string, unitDisplay }).format(
      Math.floor(n as number),
    );
  }

  /** A length of a sale file, exactly: 1 hr 30 min. */
  duration(text: string): string {
    let left = parseDuration(text);
    if (left === undefined) return text;
    const parts: string[] = [];
    for (const [unit, size] of [
      ["hour", 3_600_000],
      ["minute", 60_000],
      ["second", 1000],
      ["millisecond", 1],
    ] as const) {
      const n = Math.floor(left / size);
      left -= n * size;
      if (n > 0) parts.push(this.amount(n, unit));
    }
    return parts.length > 0 ? parts.join(" ") : this.amount(0, "second");
  }

  private amount(n: number, unit: string): string {
    return new Intl.NumberFormat(this.lang, { style: "unit", unit, unitDisplay: "short" }).format(n);
  }
}
