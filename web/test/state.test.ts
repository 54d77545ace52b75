import { describe, expect, it } from "vitest";
import type { Frame } from "../src/protocol.ts";
import { initial, reduce, type State } from "../src/state.ts";
import { order, queued, sale, T, turn, welcome } from "./stage.ts";

const told = (...frames: Frame[]): State => frames.reduce(reduce, initial);
const wanting = (state: State): State => ({ ...state, pending: { id: "r", item: "black", qty: 3 } });

describe("each frame", () => {
  it("lobby shows the lobby", () => {
    const s = told(welcome(), { type: "lobby", at: T, entries: 7, opens_at: T + 9, order: "lottery" });
    expect(s.view).toEqual({ name: "lobby", at: T, entries: 7, opens_at: T + 9, order: "lottery" });
  });

  it("queued shows the position and learns the number", () => {
    const s = told(welcome({ number: undefined }), queued({ ahead: 3 }));
    expect(s.view).toMatchObject({ name: "queued", ahead: 3 });
    expect(s.number).toBe(50);
  });

  it("a jump is told for twenty seconds, though it comes with one frame", () => {
    const at = (ms: number, reason?: string) => queued({ at: T + ms, ...(reason && { reason }) });
    const s = told(welcome(), at(0, "left"), at(1_000));
    expect(s.jump).toEqual({ why: "left", at: T });
    expect(reduce(s, at(19_999)).jump).toBeDefined();
    expect(reduce(s, at(20_000)).jump).toBeUndefined();
    expect(reduce(s, at(2_000, "rate")).jump).toEqual({ why: "rate", at: T + 2_000 });
  });

  it("an order that has ended hides no place, and is told beside it for as long as that lasts", () => {
    const ended = { type: "order", at: T + 1, order: order("expired", { id: "old" }) } as const;
    for (const place of [
      queued(),
      turn(),
      { type: "lobby", at: T, entries: 1, opens_at: T + 9, order: "fifo" } as const,
    ]) {
      const s = told(welcome(), place, ended);
      expect(s.view.name).toBe(place.type);
      expect(s.notice).toEqual({ kind: "orderEnded", status: "expired" });
    }
    const later = told(welcome(), queued(), ended, queued({ at: T + 1_000, ahead: 3 }));
    expect(later.notice).toEqual({ kind: "orderEnded", status: "expired" });
    expect(told(welcome(), { type: "missed", at: T, why: "expired" }, ended).view).toMatchObject({ name: "order" });
  });

  it("turn shows the turn, and keeps its beginning when its end moves", () => {
    const s = told(welcome(), turn(), turn({ at: T + 5_000, until: T + 90_000 }));
    expect(s.view).toMatchObject({ name: "turn", began: T, until: T + 90_000 });
  });

  it("success, already and order show the order", () => {
    for (const type of ["success", "already", "order"] as const) {
      const s = told(welcome(), turn(), { type, at: T + 1, order: order() });
      expect(s.view).toEqual({ name: "order", order: order(), already: type === "already" });
    }
  });

  it("missed says why", () => {
    expect(told(welcome(), { type: "missed", at: T, why: "absent" }).view).toEqual({ name: "missed", why: "absent" });
  });

  it("closed, none and paused are states of their own", () => {
    for (const type of ["closed", "none", "paused"] as const) {
      expect(told(welcome(), { type, at: T }).view.name).toBe(type === "paused" ? "paused" : type);
    }
  });

  it("none before joining is possible shows when that is", () => {
    const s = told(welcome({ sale: sale({ state: "scheduled", opens_at: T + 90, lobby_at: T + 60 }) }), {
      type: "none",
      at: T,
    });
    expect(s.view).toEqual({ name: "scheduled", joinsAt: T + 60, opensAt: T + 90 });
  });

  it("paused beside a state stands beside it until resumed", () => {
    const paused = told(welcome(), queued(), { type: "paused", at: T, why: "recovering" });
    expect(paused).toMatchObject({ pause: "recovering", view: { name: "queued" } });
    expect(reduce(paused, { type: "resumed", at: T }).pause).toBeUndefined();
  });

  it("a welcome into a paused sale says so, and one into a sale that goes on takes it back", () => {
    const paused = told(welcome({ sale: sale({ state: "recovering" }) }), queued());
    expect(paused.pause).toBe("recovering");
    expect(reduce(paused, welcome()).pause).toBeUndefined();
  });

  it("limited and error leave everything where it is", () => {
    const s = told(welcome(), queued());
    expect(reduce(s, { type: "limited", at: T, retry_after_ms: 5 })).toMatchObject({
      view: s.view,
      notice: { kind: "limited" },
    });
    const failed = reduce(s, { type: "error", at: T, code: "invalid", msg: "no" });
    expect(failed).toMatchObject({ view: s.view, notice: { kind: "error", code: "invalid" } });
  });

  it("stale, moving and frames of a newer server change nothing", () => {
    const s = told(welcome(), queued());
    for (const type of ["stale", "moving", "fireworks"]) expect(reduce(s, { type, at: T } as unknown as Frame)).toBe(s);
  });
});

describe("sold out", () => {
  it("held keeps the line and is taken back by the next position", () => {
    const held = told(welcome(), queued(), { type: "sold_out", at: T + 1, stock: "held" });
    expect(held.view).toMatchObject({ name: "queued", stock: "held", ahead: 20 });
    expect(reduce(held, queued({ at: T + 2 })).view).toMatchObject({ name: "queued", stock: "available" });
  });

  it("gone ends the line", () => {
    const gone = told(welcome(), queued(), { type: "sold_out", at: T + 1, stock: "gone" });
    expect(gone.view).toEqual({ name: "soldOut", stock: "gone" });
  });

  it("held ends a turn for the moment, and the turn comes back", () => {
    const held = told(welcome(), turn(), { type: "sold_out", at: T + 1, stock: "held" });
    expect(held.view).toEqual({ name: "soldOut", stock: "held" });
    expect(reduce(held, turn({ at: T + 2 })).view.name).toBe("turn");
  });

  it("held in a turn is followed by the place in line, which is written in the same moment", () => {
    const held = told(welcome(), turn(), { type: "sold_out", at: T + 1, stock: "held" });
    expect(reduce(held, queued({ at: T + 1, stock: "held" })).view).toMatchObject({ name: "queued", stock: "held" });
    expect(reduce(held, queued({ at: T })).view.name).toBe("soldOut");
  });

  it("does not concern who bought", () => {
    const bought = told(welcome(), turn(), { type: "success", at: T, order: order() });
    expect(reduce(bought, { type: "sold_out", at: T + 1, stock: "gone" }).view).toEqual(bought.view);
  });

  it("of one item leaves the others", () => {
    const s = wanting(told(welcome(), turn()));
    const answered = reduce(s, { type: "sold_out", at: T + 1, id: "r", item: "black", stock: "gone" });
    expect(answered.pending).toBeUndefined();
    expect(answered.notice).toEqual({ kind: "itemGone", item: "black", stock: "gone" });
    expect(answered.view).toMatchObject({ name: "turn", items: [{ stock: 0 }, { stock: 5 }] });
  });

  it("of the last item is all of it", () => {
    const s = wanting(
      told(
        welcome(),
        turn({
          items: [
            { id: "black", stock: 1 },
            { id: "white", stock: 0 },
          ],
        }),
      ),
    );
    const answered = reduce(s, { type: "sold_out", at: T + 1, id: "r", item: "black", stock: "held" });
    expect(answered.view).toEqual({ name: "soldOut", stock: "held" });
  });

  it("with some left says how many", () => {
    const s = wanting(told(welcome(), turn()));
    const answered = reduce(s, { type: "sold_out", at: T + 1, id: "r", item: "black", stock: "available", left: 2 });
    expect(answered).toMatchObject({ pending: undefined, notice: { kind: "fewer", left: 2 }, view: { name: "turn" } });
  });
});

describe("answers", () => {
  const answers: Frame[] = [
    { type: "success", at: T, id: "r", order: order() },
    { type: "already", at: T, id: "r", order: order() },
    { type: "sold_out", at: T, id: "r", stock: "gone" },
    { type: "no_turn", at: T, id: "r", state: "open" },
    { type: "not_open", at: T, id: "r", state: "paused" },
    { type: "error", at: T, id: "r", code: "invalid", msg: "" },
  ];

  it("settle the request that they name", () => {
    for (const answer of answers)
      expect(reduce(wanting(told(welcome(), turn())), answer).pending, answer.type).toBeUndefined();
  });

  it("to another request leave this one waiting, unless they tell of an order that stands", () => {
    for (const answer of answers.slice(2)) {
      const s = wanting(told(welcome(), turn()));
      expect(reduce(s, { ...answer, id: "another" } as Frame).pending, answer.type).toEqual(s.pending);
    }
  });

  it("of unknown outcome leave it waiting", () => {
    const s = wanting(told(welcome(), turn()));
    for (const frame of [
      { type: "error", at: T, id: "r", code: "unavailable", msg: "", retry_after_ms: 5 },
      { type: "limited", at: T, id: "r", retry_after_ms: 5 },
    ] as Frame[]) {
      expect(reduce(s, frame).pending).toEqual(s.pending);
    }
  });

  it("no_turn is still told when missed comes right behind it", () => {
    const s = reduce(wanting(told(welcome(), turn())), { type: "no_turn", at: T, id: "r" });
    expect(reduce(s, { type: "missed", at: T, why: "expired" })).toMatchObject({
      view: { name: "missed" },
      notice: { kind: "noTurn" },
    });
  });
});

describe("disorder, repeats and loss", () => {
  it("a repeated frame changes nothing", () => {
    const frames: Frame[] = [
      queued(),
      turn(),
      { type: "order", at: T, order: order("confirmed") },
      { type: "missed", at: T, why: "expired" },
      { type: "sold_out", at: T, stock: "gone" },
    ];
    for (const frame of frames) {
      const once = told(welcome(), frame);
      expect(reduce(once, frame), frame.type).toEqual(once);
    }
  });

  it("an older position never comes back", () => {
    const s = told(welcome(), queued({ at: T + 2_000, ahead: 5 }));
    expect(reduce(s, queued({ at: T + 1_000, ahead: 9 }))).toBe(s);
  });

  it("a position that was overtaken by the turn does not take the turn away", () => {
    const s = told(welcome(), turn({ at: T + 2_000 }));
    expect(reduce(s, queued({ at: T + 2_000, ahead: 0 }))).toBe(s);
    expect(reduce(s, queued({ at: T + 1_900, ahead: 0 }))).toBe(s);
  });

  it("a recall later on does", () => {
    const s = told(welcome(), turn(), queued({ at: T + 9_000 }));
    expect(s.view.name).toBe("queued");
  });

  it("an order never goes back", () => {
    const s = told(welcome(), { type: "order", at: T, order: order("confirmed") });
    const late = reduce(s, { type: "success", at: T - 1, id: "r", order: order("reserved") });
    expect(late.view).toMatchObject({ order: { status: "confirmed" } });
  });

  it("the end of an older order does not hide the newer one", () => {
    const s = told(welcome(), { type: "order", at: T, order: order("confirmed", { id: "order-2" }) });
    const late = reduce(s, { type: "order", at: T + 1, order: order("cancelled") });
    expect(late.view).toMatchObject({ order: { id: "order-2", status: "confirmed" } });
  });

  it("an order outlives what is told of the line", () => {
    const s = told(welcome(), { type: "order", at: T, order: order("confirmed") });
    for (const frame of [
      turn({ at: T + 1 }),
      queued({ at: T + 1 }),
      { type: "lobby", at: T + 1, entries: 1, opens_at: T + 9, order: "fifo" },
      { type: "closed", at: T + 1 },
      { type: "missed", at: T + 1 },
      { type: "none", at: T + 1 },
    ] as Frame[]) {
      expect(reduce(s, frame).view, frame.type).toEqual(s.view);
    }
  });

  it("but not a new welcome: what follows it holds, whatever was missed meanwhile", () => {
    const s = told(welcome(), { type: "order", at: T + 9_000, order: order("confirmed") }, welcome());
    expect(reduce(s, { type: "missed", at: T, why: "expired" }).view.name).toBe("missed");
    expect(reduce(s, queued({ at: T })).view.name).toBe("queued");
  });

  it("after a welcome the server's clock may have been set back", () => {
    const s = told(welcome({ at: T + 60_000 }), queued({ at: T + 60_000 }), welcome(), queued({ at: T, ahead: 4 }));
    expect(s.view).toMatchObject({ ahead: 4 });
  });

  it("any state follows any other without the frames between", () => {
    const states: Frame[] = [
      queued(),
      turn(),
      { type: "missed", at: T },
      { type: "closed", at: T },
      { type: "none", at: T },
    ];
    for (const first of states) {
      for (const then of states) {
        const s = told(welcome(), first, welcome(), then);
        expect(s.view.name, `${first.type} → ${then.type}`).toBe(then.type);
      }
    }
  });
});
