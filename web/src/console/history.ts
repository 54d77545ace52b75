import { Growth, type NodeRates, Rates } from "./rates.ts";
import type { LiveFrame } from "./types.ts";

/** How far back the charts go. */
export const SPAN_S = 600;
const BACK_S = 5; // a clock that is further back than this was set back, as after a failover
const GAP_S = 3; // figures further apart than this are not joined by a line

/** One column of a chart, a value for each moment; null = not known. */
export type Column = (number | null)[];

/** The figures of the last minutes, a column for each series, all as long as `at`. */
export class History {
  readonly at: number[] = []; // seconds since the epoch
  readonly columns = new Map<string, Column>();
  rates: NodeRates | undefined;
  admitted: number | undefined; // turns given a second

  private readonly nodeRates = new Rates();
  private readonly granted = new Growth();
  private epoch: number | undefined;

  /** Takes a frame. One that is no newer than the last is left out, or the lines would run back. */
  add(frame: LiveFrame): void {
    const at = frame.at / 1000;
    if (at < (this.at.at(-1) ?? 0) - BACK_S) this.clear();
    const last = this.at.at(-1);
    if (last !== undefined && at <= last) return;
    if (last !== undefined && at - last > GAP_S) this.append(last + 0.5, {});
    this.rates = this.nodeRates.next(frame.at, frame.nodes);
    this.admit(frame);
    const { orders, line } = frame;
    const under = orders.taken !== null && orders.written !== null ? Math.max(0, orders.taken - orders.written) : null;
    const values: Record<string, number | null> = {
      waiting: line?.waiting ?? null,
      admitted: this.admitted ?? null,
      under_way: under,
      outbox: orders.outbox,
      broker: orders.broker,
    };
    for (const [name, rate] of Object.entries(this.rates?.grabs ?? {})) values[`grabs ${name}`] = rate;
    for (const item of frame.sale?.items ?? []) values[`item ${item.id}`] = item.left ?? null;
    this.append(at, values);
    this.forget(at - SPAN_S);
  }

  column(name: string): Column {
    return this.columns.get(name) ?? this.at.map(() => null);
  }

  /** When a node was last heard of, by the time of the frames. */
  heard(node: string): number | undefined {
    return this.nodeRates.heard(node);
  }

  /** The highest value of a column, undefined when nothing is known. */
  peak(name: string): number | undefined {
    let peak: number | undefined;
    for (const value of this.columns.get(name) ?? []) {
      if (value !== null && (peak === undefined || value > peak)) peak = value;
    }
    return peak;
  }

  private admit({ at, line, sale }: LiveFrame): void {
    if (!line) {
      this.admitted = undefined;
      return;
    }
    if (sale?.epoch !== this.epoch)
      this.granted.begin(at, { granted: line.granted }); // after a loss it counts anew
    else this.granted.push(at, { granted: line.granted });
    this.epoch = sale?.epoch;
    this.admitted = this.granted.of("granted");
  }

  private append(at: number, values: Record<string, number | null>): void {
    for (const name of Object.keys(values)) {
      if (!this.columns.has(name)) {
        this.columns.set(
          name,
          this.at.map(() => null),
        );
      }
    }
    this.at.push(at);
    for (const [name, column] of this.columns) column.push(values[name] ?? null);
  }

  private clear(): void {
    this.at.length = 0;
    this.columns.clear();
    this.epoch = undefined;
  }

  private forget(before: number): void {
    const old = this.at.findIndex((at) => at >= before);
    if (old <= 0) return;
    this.at.splice(0, old);
    for (const column of this.columns.values()) column.splice(0, old);
  }
}
