const two = (n: number) => String(n).padStart(2, "0");

/** A moment as a datetime-local field has it, in the time zone of this device. Seconds only where there are some. */
export function toLocal(rfc3339: string): string {
  const at = new Date(rfc3339);
  if (Number.isNaN(at.getTime())) return "";
  const day = `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const seconds = at.getSeconds() > 0 ? `:${two(at.getSeconds())}` : "";
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}${seconds}`;
}

/**
 * The moment that such a field says, as RFC 3339. A field knows neither milliseconds nor the time zone a moment was
 * written in, so one that nobody touched gives back what it came from.
 */
export function fromLocal(local: string, origin = ""): string {
  if (origin !== "" && local === toLocal(origin)) return origin;
  const at = new Date(local);
  return local === "" || Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

/** The name of this device's time zone. */
export function zone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
