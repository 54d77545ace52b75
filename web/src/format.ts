import type { Text } from "./protocol.ts";

/** Numbers, times and prices in one language. */
export class Format {
  readonly #whole: Intl.NumberFormat;

  constructor(readonly lang: string) {
    this.#whole = new Intl.NumberFormat(lang);
  }

  number(n: number): string {
    return this.#whole.format(n);
  }

  /** A price, given in minor units. How many there are to a unit is the currency's own matter: 100, 1 or 1,000. */
  price(minor: number, currency: string): string {
    try {
      const format = new Intl.NumberFormat(this.lang, { style: "currency", currency, currencyDisplay: "narrowSymbol" });
      const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
      const value = minor / 10 ** digits;
      if (!Number.isInteger(value)) return format.format(value);
      return new Intl.NumberFormat(this.lang, {
        style: "currency",
        currency,
        currencyDisplay: "narrowSymbol",
        maximumFractionDigits: 0,
      }).format(value);
    } catch {
      return `${this.number(minor / 100)} ${currency}`; // no such currency
    }
  }

  /** A moment in the shopper's own time zone; the day only when it is another than that of now. */
  moment(at: number, now: number): string {
    const day: Intl.DateTimeFormatOptions =
      new Date(at).toDateString() === new Date(now).toDateString()
        ? {}
        : { weekday: "short", month: "short", day: "numeric" };
    return new Intl.DateTimeFormat(this.lang, { ...day, hour: "2-digit", minute: "2-digit" }).format(at);
  }

  /** What is left, as a clock: 0:42, 12:05, 3:12:05; days are counted in words. A second that has begun is still there. */
  clock(ms: number): string {
    const left = Math.max(0, Math.ceil(ms / 1000));
    const days = Math.floor(left / 86_400);
    const hours = Math.floor((left % 86_400) / 3600);
    const minutes = Math.floor((left % 3600) / 60);
    const two = (n: number) => String(n).padStart(2, "0");
    const time = hours + days > 0 ? `${hours}:${two(minutes)}:${two(left % 60)}` : `${minutes}:${two(left % 60)}`;
    return days > 0 ? `${this.#unit(days, "day")} ${time}` : time;
  }

  /** A length in words, rounded so that nobody sets a watch by it; undefined under a minute. */
  range(from: number, to: number): string | undefined {
    if (to < 60_000) return undefined;
    const unit = to >= 2 * 3_600_000 ? "hour" : "minute";
    const size = unit === "hour" ? 3_600_000 : 60_000;
    const low = Math.max(1, Math.floor(from / size));
    const high = Math.max(low, Math.ceil(to / size));
    const format = this.#units(unit);
    return low === high ? format.format(low) : format.formatRange(low, high);
  }

  /** A length that must not be promised longer than it is: whole hours, minutes or seconds. */
  length(ms: number): string {
    if (ms >= 2 * 3_600_000) return this.#unit(Math.floor(ms / 3_600_000), "hour");
    return ms >= 60_000 ? this.#unit(Math.floor(ms / 60_000), "minute") : this.#unit(Math.floor(ms / 1000), "second");
  }

  /** A text of the sale in this language, else in English, else in whatever it has. */
  text(text: Text | undefined, fallback: string): string {
    if (typeof text === "string") return text;
    if (!text) return fallback;
    const base = this.lang.split("-")[0] ?? "";
    return text[this.lang] ?? text[base] ?? text.en ?? Object.values(text)[0] ?? fallback;
  }

  #unit(n: number, unit: string): string {
    return this.#units(unit).format(n);
  }

  #units(unit: string): Intl.NumberFormat {
    return new Intl.NumberFormat(this.lang, { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 0 });
  }
}
