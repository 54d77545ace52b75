import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Frame, OrderStatus } from "../src/protocol.ts";
import { type Connection, type Entry, heardIn, Replay, standing, type Visit, visits } from "./recorded.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Random numbers that are the same in every run. */
function dice(seed: number): () => number {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const replay = (connections: Connection[]) => new Replay().play(connections);

describe("the recordings", () => {
  const heard = visits.flatMap(({ connections }) => heardIn(connections));

  it("have every type of frame", () => {
    const all: Record<Frame["type"], true> = {
      welcome: true,
      lobby: true,
      queued: true,
      turn: true,
      success: true,
      already: true,
      order: true,
      sold_out: true,
      no_turn: true,
      not_open: true,
      paused: true,
      resumed: true,
      closed: true,
      missed: true,
      none: true,
      stale: true,
      limited: true,
      error: true,
      moving: true,
    };
    expect([...new Set(heard.map(({ type }) => type))].sort()).toEqual(Object.keys(all).sort());
  });

  it("have every type that the protocol names", () => {
    const protocol = readFileSync("../docs/protocol.md", "utf8");
    const table = protocol.slice(protocol.indexOf("| from the server |")).split("\n\n")[0] ?? "";
    const rows = table.split("\n").slice(2);
    const named = rows.flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, type]) => type));
    expect(named.length).toBeGreaterThan(15);
    for (const type of named)
      expect(
        heard.map(({ type }) => type),
        type,
      ).toContain(type);
  });

  it("have every status of an order, both kinds of being sold out and of having missed it, and both outcomes of trouble", () => {
    const all: OrderStatus[] = ["reserved", "confirmed", "paid", "cancelled", "expired", "rejected"];
    const told = (type: Frame["type"], key: string) => heard.filter((f) => f.type === type).map((f) => f[key as never]);
    const orders = heard.flatMap((frame) => (frame.type === "order" ? frame.order.status : []));
    expect([...new Set(orders)].sort()).toEqual([...all].sort());
    expect(new Set(told("sold_out", "stock"))).toEqual(new Set(["available", "held", "gone"]));
    expect(new Set(told("missed", "why"))).toEqual(new Set(["expired", "absent"]));
    expect(new Set(told("error", "code"))).toEqual(new Set(["unavailable", "invalid"]));
  });

  it("keep no secret: every token and every seat has a name instead", () => {
    const all = JSON.stringify(visits);
    expect(all).not.toMatch(/eyJ|e2e-/);
    for (const [, key, value] of all.matchAll(/"(token|seat|user|node|pass)":"([^"]*)"/g)) {
      expect(value, key).toMatch(/^(token|pass|(seat|guest|node)-\d+)$/);
    }
  });
});

describe.each(visits.map((visit) => [visit.who, visit] as const))("%s", (_, visit) => {
  const heard = heardIn(visit.connections);
  const end = () => replay(visit.connections).shown;

  it("ends where the page was", () => {
    const { ahead: _, ...shown } = end();
    expect(shown).toEqual({ order: undefined, status: undefined, number: undefined, ...visit.end });
  });

  it("shows at each moment what the server said last", () => {
    const page = new Replay();
    page.look = (page, heard) => {
      const last = heard.at(-1) as Frame;
      if (
        ["welcome", "stale", "moving"].includes(last.type) ||
        ("id" in last && last.id) ||
        page.shown.view === "grabbing"
      )
        return;
      const { state, order } = standing(heard.slice(heard.findLastIndex(({ type }) => type === "welcome")));
      if (!state) return;
      const names: Partial<Record<Frame["type"], string>> = { sold_out: "soldOut" };
      const { view, ahead, status } = page.shown;
      if (order) expect([view, status]).toEqual(["order", order.status]);
      else if (state.type === "none") expect(["none", "scheduled", "left"]).toContain(view);
      else expect(view, JSON.stringify(last)).toBe(names[state.type] ?? state.type);
      if (state.type === "queued") expect(ahead).toBe(state.ahead);
    };
    page.play(visit.connections);
  });

  it("is put right by the next welcome and state, whichever frame is lost", () => {
    const whole = end();
    for (let lost = 0; lost < heard.length; lost++) {
      const page = replay(without(visit, lost));
      page.comeBack(heard);
      expect(page.shown, `without frame ${lost}, ${JSON.stringify(heard[lost])}`).toEqual(whole);
    }
  });

  it("ends the same when positions come late, and positions and orders twice", () => {
    const whole = end();
    for (let seed = 1; seed <= 60; seed++) {
      const random = dice(seed);
      const disturbed = visit.connections.map((c) => ({ ...c, frames: late(c.frames, random) }));
      const { number, ...shown } = replay(disturbed).shown;
      // A number that was drawn comes with the first position, which may have been too late.
      expect({ number: number ?? whole.number, ...shown }, `seed ${seed}`).toEqual(whole);
    }
  });

  it("ends the same when the connection breaks anywhere, for any time", () => {
    const whole = end();
    for (let seed = 1; seed <= 60; seed++) {
      expect(broken(visit, dice(seed)).shown, `seed ${seed}`).toEqual(whole);
    }
  });
});

describe("a live order", () => {
  const line: Frame["type"][] = [
    "lobby",
    "queued",
    "turn",
    "missed",
    "none",
    "closed",
    "sold_out",
    "paused",
    "resumed",
  ];
  const news = visits.flatMap(({ connections }) => heardIn(connections)).filter(({ type }) => line.includes(type));
  const buyers = visits.filter(({ end }) => end.status === "confirmed" || end.status === "paid");

  it("stays, whatever is told of the line afterwards", () => {
    expect(buyers.length).toBeGreaterThan(3);
    for (const visit of buyers) {
      const page = replay(visit.connections);
      const { order, status } = page.shown;
      news.forEach((frame, i) => {
        page.hear({ ...frame, at: page.now.at + i } as Frame);
        expect(page.shown).toMatchObject({ view: "order", order, status });
      });
    }
  });
});

/** The visit as it would be if one of the frames that were heard had been lost. */
function without(visit: Visit, lost: number): Connection[] {
  let n = 0;
  return visit.connections.map((c) => ({ ...c, frames: c.frames.filter(({ heard }) => !heard || n++ !== lost) }));
}

/**
 * Positions may be sent late, behind what was written after them: but not behind a welcome, which is written when all that
 * is older has been. They come twice, or several steps late; news of an order comes in time, and may be repeated.
 */
function late(entries: Entry[], random: () => number): Entry[] {
  const keyed: [number, Entry][] = [];
  entries.forEach((entry, i) => {
    const next = entries.findIndex(({ heard }, n) => n > i && heard?.type === "welcome");
    const last = next < 0 ? entries.length : next - 0.5;
    const position = entry.heard?.type === "queued" || entry.heard?.type === "lobby";
    const order = entry.heard && "order" in entry.heard && entry.heard.type !== "lobby";
    const delayed = () => Math.min(last, i + random() * 6);
    keyed.push([position ? delayed() : i, entry]);
    if ((position || order) && random() < 0.4) keyed.push([delayed(), entry]);
  });
  return keyed.sort(([a], [b]) => a - b).map(([, entry]) => entry);
}

/** Plays a visit whose connection breaks somewhere and is back some frames later; the shopper goes on meanwhile. */
function broken(visit: Visit, random: () => number): Replay {
  const page = new Replay();
  const connection = Math.floor(random() * visit.connections.length);
  const before = visit.connections.slice(0, connection);
  const { frames, ...rest } = visit.connections[connection] as Connection;
  const from = 1 + Math.floor(random() * (frames.length - 1)); // not before the hello, which names what is known
  const to = from + Math.ceil(random() * (frames.length - from));
  const known = [...heardIn(before), ...heardIn([{ frames: frames.slice(0, to) }])];
  page.play([...before, { frames: frames.slice(0, from), close: { code: 1006, reason: "" } }]);
  for (const { said } of frames.slice(from, to)) if (said) page.act(said);
  page.comeBack(known);
  return page.play([{ ...rest, frames: frames.slice(to) }, ...visit.connections.slice(connection + 1)], true);
}
