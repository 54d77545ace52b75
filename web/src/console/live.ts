import { computed, signal } from "@preact/signals";
import { Backoff } from "../backoff.ts";
import { Clock } from "../clock.ts";
import { type Api, Problem } from "./api.ts";
import { History } from "./history.ts";
import { readEvents } from "./sse.ts";
import type { LiveFrame, Sale } from "./types.ts";

/** Figures older than this look old: one comes every second. */
export const STALE_MS = 3_000;
const SILENT_MS = 10_000; // a stream that said nothing for so long is given up
const MOST_WAIT_MS = 10_000; // there are few operators, and they are in a hurry

export type Link = "connecting" | "open" | "waiting" | "ended";

/** The live figures of one sale, for as long as somebody looks: comes back by itself, and says how old they are. */
export class Live {
  readonly frame = signal<LiveFrame>();
  readonly sale = signal<Sale>(); // as it was last known
  readonly link = signal<Link>("connecting");
  readonly quiet = signal(0); // ms since the last figures, or since the beginning
  readonly stale = computed(() => this.quiet.value > STALE_MS);
  readonly retryIn = signal(0); // ms
  readonly gone = signal(false); // there is no such sale
  readonly problem = signal<Problem>(); // why the last attempt failed, where the server said so
  readonly clock = new Clock();
  readonly history = new History();

  private readonly backoff = new Backoff();
  private stream: AbortController | undefined;
  private heardAt: number; // of the last bytes
  private freshAt: number; // of the last figures
  private retryAt = 0;
  private stopped = false;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly api: Pick<Api, "live">,
    private readonly id: string,
    private readonly steady: () => number = () => performance.now(),
  ) {
    this.heardAt = this.freshAt = this.steady();
  }

  start(): void {
    this.timer = setInterval(() => this.watch(), 500);
    void this.connect();
  }

  stop(): void {
    this.stopped = true;
    clearInterval(this.timer);
    this.link.value = "ended";
    this.stream?.abort();
  }

  /** Tries at once, instead of when it is time. */
  retry(): void {
    if (this.link.value === "waiting") void this.connect();
  }

  private async connect(): Promise<void> {
    this.link.value = "connecting";
    this.heardAt = this.steady();
    const stream = new AbortController();
    this.stream = stream;
    try {
      const response = await this.api.live(this.id, stream.signal);
      if (!response.body) throw new Problem(response.status, "unreadable", "");
      this.heardAt = this.steady();
      await readEvents(
        response.body,
        ({ data }) => this.take(data),
        () => {
          this.heardAt = this.steady();
        },
      );
      // The stream ends when a node drains; another one is there already.
    } catch (error) {
      if (error instanceof Problem && (error.status === 404 || error.status === 401)) {
        this.gone.value = error.status === 404;
        this.stop();
      }
      this.problem.value = error instanceof Problem ? error : undefined;
    }
    if (this.stopped || this.stream !== stream) return;
    const wait = Math.min(MOST_WAIT_MS, this.backoff.next());
    this.retryAt = this.steady() + wait;
    this.retryIn.value = wait;
    this.link.value = "waiting";
  }

  private take(data: string): void {
    let frame: LiveFrame;
    try {
      frame = JSON.parse(data) as LiveFrame;
    } catch {
      return; // the next one comes in a second, and until then these figures grow old
    }
    this.problem.value = undefined;
    this.backoff.reset();
    // While Redis cannot be asked, frames go on with the line as it was read last, and with that moment.
    if (frame.at !== this.frame.value?.at) {
      this.freshAt = this.steady();
      this.quiet.value = 0;
      this.clock.sample(frame.at);
      this.history.add(frame);
    }
    this.link.value = "open";
    if (frame.sale) this.sale.value = frame.sale;
    this.frame.value = frame;
  }

  private watch(): void {
    const now = this.steady();
    this.quiet.value = now - this.freshAt;
    if (this.link.value === "waiting") {
      this.retryIn.value = Math.max(0, this.retryAt - now);
      if (now >= this.retryAt) void this.connect();
    } else if (now - this.heardAt > SILENT_MS) {
      this.heardAt = now;
      this.stream?.abort();
    }
  }
}
