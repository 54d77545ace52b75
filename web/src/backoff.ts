/** After this long connected the next trouble is a new one. */
export const SETTLED_MS = 60_000;

/**
 * How long to wait before the next attempt: anywhere between nothing and a ceiling that doubles. Spreading over the whole
 * span, from the first attempt on, is what keeps a crowd from coming back in the same second.
 */
export class Backoff {
  #attempt = 0;

  constructor(private readonly random: () => number = Math.random) {}

  next(): number {
    const ceiling = Math.min(30_000, 3_000 * 2 ** Math.min(this.#attempt, 10));
    this.#attempt++;
    return this.random() * ceiling;
  }

  reset(): void {
    this.#attempt = 0;
  }
}
