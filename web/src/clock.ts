/**
 * The server's time. It is built on a clock that only runs forward, never on the wall clock of this device, which people
 * set wrong or move in the middle of a sale.
 */
export class Clock {
  #offset: number | undefined;

  /** @param steady milliseconds that only grow, such as performance.now */
  constructor(private readonly steady: () => number = () => performance.now()) {}

  /**
   * Takes the time that a frame was written. A frame can only be late, so the largest difference is the nearest to the
   * truth; one that is smaller by more than five seconds says that the server's clock was set back.
   */
  sample(at: number): void {
    const offset = at - this.steady();
    if (this.#offset === undefined || offset > this.#offset || offset < this.#offset - 5000) this.#offset = offset;
  }

  /** Forgets what it knew: the next sample counts, whatever it is. */
  reset(): void {
    this.#offset = undefined;
  }

  /** Server time in ms since the epoch; this device's own time until the first sample. */
  now(): number {
    return this.#offset === undefined ? Date.now() : this.steady() + this.#offset;
  }
}
