import { type Limiter, limiters, type NodeFigures, type Result, results } from "./types.ts";

const WINDOW_MS = 5_000; // long enough to be calm, short enough to see a rush begin

type Counts = Record<string, number>;

interface Sample {
  at: number;
  counts: Counts;
}

/** How fast a set of counters has grown over the last seconds. */
export class Growth {
  private samples: Sample[] = [];

  /** Begins anew from these counts: what they were before says nothing about what comes. */
  begin(at: number, counts: Counts): void {
    this.samples = [{ at, counts }];
  }

  push(at: number, counts: Counts): void {
    const last = this.samples.at(-1);
    if (last && at <= last.at) return; // the same figures again
    if (last && Object.entries(last.counts).some(([name, n]) => (counts[name] ?? 0) < n)) {
      this.begin(at, counts); // a counter that went back was lost, and nothing is known of the time between
      return;
    }
    this.samples.push({ at, counts });
    while (this.samples.length > 2 && (this.samples[1] as Sample).at <= at - WINDOW_MS) this.samples.shift();
  }

  get last(): number | undefined {
    return this.samples.at(-1)?.at;
  }

  /** Growth a second of one counter; undefined until there are two figures to compare. */
  of(name: string): number | undefined {
    const [first, last] = [this.samples[0], this.samples.at(-1)];
    if (!first || !last || last.at <= first.at) return undefined;
    return (((last.counts[name] ?? 0) - (first.counts[name] ?? 0)) * 1000) / (last.at - first.at);
  }
}

export interface NodeRates {
  grabs: Record<Result, number>;
  limited: Record<Limiter, number>;
}

interface Known {
  started: number;
  reported: number; // by its own clock, which is compared with no other
  heard: number; // time of the frame that had this report first
  growth: Growth;
}

/**
 * Grabs and refusals a second of all nodes together, from counters that each node has since it started. A node that
 * restarts counts from nothing, a node that comes in between brings its past along, and one that falls silent counts no
 * more: none of that may show as a peak.
 */
export class Rates {
  private nodes = new Map<string, Known>();
  private seen = 0; // time of the frame before

  next(at: number, nodes: readonly NodeFigures[]): NodeRates | undefined {
    for (const node of nodes) this.take(at, node);
    const names = new Set(nodes.map(({ node }) => node));
    for (const name of this.nodes.keys()) if (!names.has(name)) this.nodes.delete(name);
    this.seen = Math.max(at, this.seen);
    return this.sum(at);
  }

  /** When a node was last heard of, by the time of the frames. */
  heard(node: string): number | undefined {
    return this.nodes.get(node)?.heard;
  }

  private take(at: number, node: NodeFigures): void {
    const counts: Counts = { ...node.grabs };
    for (const by of limiters) counts[`by ${by}`] = node.limited?.[by] ?? 0;
    const before = this.nodes.get(node.node);
    if (before?.started === node.started) {
      before.growth.push(node.at, counts);
      // A time to come is of before the clock was set back.
      if (node.at !== before.reported || before.heard > at) before.heard = at;
      before.reported = node.at;
      return;
    }
    const known = { started: node.started, reported: node.at, heard: at, growth: new Growth() };
    this.nodes.set(node.node, known);
    // It began while somebody looked, so all that it counted is new. Otherwise its past is of another time.
    if (this.seen > 0 && (before || node.at - node.started < at - this.seen)) {
      known.growth.begin(Math.max(node.started, before?.growth.last ?? 0), {});
    }
    known.growth.push(node.at, counts);
  }

  private sum(at: number): NodeRates | undefined {
    let known = false;
    const rate = (name: string) => {
      let sum = 0;
      for (const { growth, heard } of this.nodes.values()) {
        const part = growth.of(name);
        if (part === undefined) continue;
        known = true;
        if (at - heard <= WINDOW_MS) sum += part;
      }
      return sum;
    };
    const grabs = Object.fromEntries(results.map((name) => [name, rate(name)])) as Record<Result, number>;
    const limited = Object.fromEntries(limiters.map((by) => [by, rate(`by ${by}`)])) as Record<Limiter, number>;
    return known ? { grabs, limited } : undefined;
  }
}

/** All that was refused by limits, since the nodes started. */
export function limitedSum(nodes: readonly NodeFigures[]): Record<Limiter, number> {
  const sum = { user: 0, address: 0, node: 0 };
  for (const node of nodes) for (const by of limiters) sum[by] += node.limited?.[by] ?? 0;
  return sum;
}
