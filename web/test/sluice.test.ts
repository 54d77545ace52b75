import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Frame } from "../src/protocol.ts";
import { order, queued, sale, shopper, T, turn, welcome } from "./stage.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("saying hello", () => {
  it("joins without a seat and resumes with one, and names the order it was told of", () => {
    const fresh = shopper();
    fresh.client.start();
    fresh.socket.accept();
    expect(fresh.socket.sent).toEqual([{ type: "hello", token: "token" }]);

    const back = shopper(undefined, { seat: "seat-1", order: "order-1" });
    back.client.start();
    back.socket.accept();
    expect(back.socket.sent).toEqual([{ type: "hello", token: "token", seat: "seat-1", order: "order-1" }]);
  });

  it("keeps the seat it is given, and the order, so that the next visit can ask what it came to", () => {
    const s = shopper().arrive();
    expect(s.kept.memory.seat).toBe("seat-1");
    s.socket.say({ type: "success", at: T, order: order() });
    expect(s.kept.memory).toMatchObject({ seat: "seat-1", order: "order-1" });
    s.socket.say({ type: "order", at: T, order: order("expired") });
    expect(s.kept.memory.order).toBe("order-1");
  });

  it("keeps no older order than a live one, and none when there is a new place", () => {
    const s = shopper().arrive({ type: "order", at: T, order: order("confirmed", { id: "order-2" }) });
    s.socket.say({ type: "order", at: T, order: order("cancelled") });
    expect(s.kept.memory.order).toBe("order-2");
    s.socket.say({ type: "order", at: T, order: order("cancelled", { id: "order-2" }) }, queued({ at: T + 1 }));
    expect(s.kept.memory.order).toBeUndefined();
  });

  it("asks again on the same connection when it was limited", () => {
    const s = shopper();
    s.client.start();
    s.socket.accept();
    s.socket.say({ type: "limited", at: T, retry_after_ms: 1_500 });
    vi.advanceTimersByTime(1_499);
    expect(s.socket.all("hello")).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(s.socket.all("hello")).toHaveLength(2);
    expect(s.sockets).toHaveLength(1);
  });

  it("joins by itself when joining becomes possible, by the server's clock", () => {
    const s = shopper(() => 0);
    s.client.start();
    s.socket.accept();
    const scheduled = welcome({
      seat: undefined,
      number: undefined,
      sale: sale({ state: "scheduled", lobby_at: T + 60_000 }),
    });
    s.socket.say(scheduled, { type: "none", at: T });
    vi.advanceTimersByTime(59_999);
    expect(s.socket.all("hello")).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(s.socket.all("hello")).toHaveLength(2);
  });

  it("brings a code and a challenge, when it is told them, and the code again after a place was lost", () => {
    const s = shopper();
    s.client.start();
    s.socket.accept();
    s.socket.hangUp(4403, "code_needed");
    s.client.join("EARLY-BIRD", "solved");
    s.socket.accept();
    expect(s.socket.sent).toEqual([{ type: "hello", token: "token", code: "EARLY-BIRD", challenge: "solved" }]);
    s.socket.say(welcome(), { type: "missed", at: T, why: "expired" });
    s.client.join();
    expect(s.socket.all("hello").at(-1)).toEqual({ type: "hello", token: "token", code: "EARLY-BIRD" });
  });

  it("waits for a lobby that is months away", () => {
    const s = shopper(() => 0);
    s.client.start();
    s.socket.accept();
    const far = T + 90 * 86_400_000;
    s.socket.say(welcome({ sale: sale({ state: "scheduled", lobby_at: far }) }), { type: "none", at: T });
    vi.advanceTimersByTime(60_000);
    expect(s.socket.all("hello")).toHaveLength(1);
  });

  it("takes a new place on the open connection after one that was missed, without the old seat", () => {
    const s = shopper().arrive({ type: "missed", at: T, why: "expired" });
    s.client.join();
    expect(s.socket.sent.at(-1)).toEqual({ type: "hello", token: "token" });
    s.socket.say(welcome({ seat: "seat-2", number: 90 }), queued({ number: 90 }));
    expect(s.kept.memory.seat).toBe("seat-2");
    expect(s.view).toMatchObject({ name: "queued", number: 90 });
  });
});

describe("coming back", () => {
  it("waits anywhere between nothing and a ceiling that doubles up to 30 s, from the first time on", () => {
    for (const random of [0, 0.5, 0.999]) {
      const s = shopper(() => random).arrive(queued());
      for (const ceiling of [3_000, 6_000, 12_000, 24_000, 30_000, 30_000]) {
        s.socket.hangUp(1013);
        const before = s.sockets.length;
        vi.advanceTimersByTime(Math.max(0, random * ceiling - 1));
        if (random > 0) expect(s.sockets.length).toBe(before);
        vi.advanceTimersByTime(2);
        expect(s.sockets.length).toBe(before + 1);
      }
    }
  });

  it("begins anew after a minute connected, and not before", () => {
    const s = shopper(() => 0.999).arrive(queued());
    for (let i = 0; i < 4; i++) {
      s.socket.hangUp(1006);
      s.comeBack();
    }
    s.arrive(queued());
    vi.advanceTimersByTime(59_000);
    s.socket.hangUp(1006);
    expect(s.comeBack(24_000)).toBe(0);
    s.comeBack();
    s.arrive(queued());
    vi.advanceTimersByTime(60_000);
    s.socket.hangUp(1006);
    expect(s.comeBack(3_000)).toBe(1);
  });

  it("keeps the seat and what was shown, and resumes the same number", () => {
    const s = shopper().arrive(queued({ ahead: 12 }));
    s.socket.hangUp(1012);
    expect(s.client.state).toMatchObject({ link: "waiting", view: { name: "queued", ahead: 12 } });
    s.comeBack();
    s.socket.accept();
    expect(s.socket.sent[0]).toMatchObject({ type: "hello", seat: "seat-1" });
    s.socket.say(welcome(), queued({ ahead: 11 }));
    expect(s.client.state).toMatchObject({ link: "open", number: 50, view: { ahead: 11 } });
  });

  it("is over for codes that coming back would not change, and only for those", () => {
    for (const code of [4400, 4403, 4404, 4407, 4409]) {
      const s = shopper().arrive(queued());
      s.socket.hangUp(code, "why");
      expect(s.view).toEqual({ name: "refused", code, reason: "why" });
      expect(s.comeBack(120_000)).toBe(0);
    }
    for (const code of [1000, 1001, 1005, 1006, 1012, 1013, 4408, 4429]) {
      const s = shopper().arrive(queued());
      s.socket.hangUp(code);
      expect(s.view.name, String(code)).toBe("queued");
      expect(s.comeBack(), String(code)).toBe(1);
    }
  });

  it("tries once without a seat that is not taken, and is over when it is the sign-in that is not", () => {
    const s = shopper().arrive(queued());
    s.socket.hangUp(1012);
    s.comeBack();
    s.socket.accept();
    s.socket.hangUp(4401, "the seat token is not valid");
    expect(s.view.name).toBe("queued");
    s.socket.accept();
    expect(s.socket.sent).toEqual([{ type: "hello", token: "token" }]);
    s.socket.say(welcome({ seat: "seat-2" }), queued());
    expect(s.kept.memory.seat).toBe("seat-2");

    s.socket.hangUp(4401, "why");
    s.socket.accept();
    expect(s.socket.sent).toEqual([{ type: "hello", token: "token" }]);
    s.socket.hangUp(4401, "why");
    expect(s.view).toEqual({ name: "refused", code: 4401, reason: "why" });
    expect(s.comeBack(120_000)).toBe(0);
    expect(s.kept.memory.seat).toBe("seat-2");

    const fresh = shopper();
    fresh.client.start();
    fresh.socket.accept();
    fresh.socket.hangUp(4401, "why");
    expect(fresh.view.name).toBe("refused");
  });

  it("comes back when a draining node said, whether it was hung up on or not", () => {
    for (const hangsUp of [true, false]) {
      const s = shopper(() => 0).arrive(queued(), { type: "moving", at: T, retry_in_ms: 7_000 });
      if (hangsUp) s.socket.hangUp(1012);
      vi.advanceTimersByTime(6_999);
      expect(s.sockets).toHaveLength(1);
      vi.advanceTimersByTime(1);
      expect(s.sockets).toHaveLength(2);
      expect(s.sockets[0]?.readyState).toBe(3);
    }
  });

  it("gives up a connection that is never welcomed", () => {
    const s = shopper(() => 0);
    s.client.start();
    s.socket.accept();
    vi.advanceTimersByTime(15_001);
    expect(s.sockets).toHaveLength(2);
    expect(s.sockets[0]?.closed).toBe(true);
  });

  it("does not listen to a connection that it has given up", () => {
    const s = shopper(() => 0).arrive(queued());
    const old = s.socket;
    const hear = old.onmessage;
    s.client.stop();
    hear?.({ data: JSON.stringify(turn()) });
    expect(s.view.name).toBe("queued");
  });

  it("asks at once when somebody looks again, and gives up what does not answer", () => {
    const s = shopper(() => 0).arrive(queued());
    s.client.recheck();
    expect(s.socket.all("hello"), "it spoke just now").toHaveLength(1);
    vi.advanceTimersByTime(11_000);
    s.client.recheck();
    expect(s.socket.all("hello")).toHaveLength(2);
    vi.advanceTimersByTime(15_001);
    expect(s.sockets).toHaveLength(2);
  });

  it("does not wait out a long delay when somebody looks again", () => {
    const s = shopper(() => 0.9).arrive(queued());
    for (let i = 0; i < 5; i++) {
      s.socket.hangUp(1006);
      s.comeBack();
    }
    s.socket.hangUp(1006);
    s.client.recheck();
    expect(s.comeBack(1_000)).toBe(1);
  });

  it("survives what is not a frame", () => {
    const s = shopper().arrive(queued());
    s.socket.onmessage?.({ data: "<html>" });
    expect(s.view.name).toBe("queued");
  });
});

describe("buying", () => {
  const unknown: Frame = { type: "error", at: T, id: "request-1", code: "unavailable", msg: "", retry_after_ms: 800 };

  it("uses one request id for one wish: after silence, limits, faults and on the next connection", () => {
    const s = shopper(() => 0).arrive(turn());
    s.client.grab("black", 1);
    const grab = { type: "grab", id: "request-1", item: "black", qty: 1 };
    expect(s.socket.all("grab")).toEqual([grab]);

    vi.advanceTimersByTime(12_000); // silence
    expect(s.socket.all("grab")).toEqual([grab, grab]);
    s.socket.say({ type: "limited", at: T, id: "request-1", retry_after_ms: 700 });
    vi.advanceTimersByTime(700);
    expect(s.socket.all("grab")).toHaveLength(3);
    s.socket.say(unknown);
    vi.advanceTimersByTime(800);
    expect(s.socket.all("grab")).toHaveLength(4);

    s.socket.hangUp(1006); // the answer may have been lost with it
    s.comeBack(1);
    s.socket.accept();
    expect(s.socket.all("grab"), "not before the welcome").toEqual([]);
    s.socket.say(welcome(), turn());
    expect(s.socket.all("grab")).toEqual([grab]);
    s.socket.say({ type: "success", at: T, id: "request-1", order: order() });
    expect(s.client.state).toMatchObject({ pending: undefined, view: { name: "order" } });
    vi.advanceTimersByTime(60_000);
    expect(s.socket.all("grab")).toHaveLength(1);
  });

  it("ignores a second press while the first is under way, and uses a new id afterwards", () => {
    const s = shopper().arrive(turn());
    s.client.grab("black", 1);
    s.client.grab("white", 1);
    expect(s.socket.all("grab")).toHaveLength(1);
    s.socket.say({ type: "sold_out", at: T, id: "request-1", item: "black", stock: "gone" });
    s.client.grab("white", 1);
    expect(s.socket.all("grab").at(-1)).toMatchObject({ id: "request-2", item: "white" });
  });

  it("waits for a connection when there is none at the moment", () => {
    const s = shopper(() => 0).arrive(turn());
    s.socket.hangUp(1006);
    s.client.grab("black", 1);
    s.comeBack(1);
    s.socket.accept();
    s.socket.say(welcome(), turn());
    expect(s.socket.all("grab")).toHaveLength(1);
  });

  it("is settled by the order itself when the answer was lost", () => {
    const s = shopper(() => 0).arrive(turn());
    s.client.grab("black", 1);
    s.socket.say({ type: "order", at: T, order: order("confirmed") });
    expect(s.client.state.pending).toBeUndefined();
    vi.advanceTimersByTime(60_000);
    expect(s.socket.all("grab")).toHaveLength(1);
  });
});

describe("leaving", () => {
  it("is done when the server hangs up, and the page does not join again by itself", () => {
    const s = shopper().arrive(queued());
    s.client.leave();
    expect(s.socket.all("leave")).toHaveLength(1);
    s.socket.hangUp(1000, "you have left the line");
    expect(s.view.name).toBe("left");
    expect(s.comeBack(60_000)).toBe(0);

    const reloaded = shopper(undefined, s.kept.memory);
    reloaded.client.start();
    expect(reloaded.sockets).toHaveLength(0);
    expect(reloaded.view.name).toBe("left");
    reloaded.client.join();
    reloaded.socket.accept();
    expect(reloaded.socket.sent).toEqual([{ type: "hello", token: "token" }]);
  });

  it("is asked for again when the connection broke meanwhile", () => {
    const s = shopper(() => 0).arrive(queued());
    s.client.leave();
    s.socket.hangUp(1006);
    s.comeBack(1);
    s.socket.accept();
    s.socket.say(welcome(), queued());
    expect(s.socket.all("leave")).toHaveLength(1);
    s.socket.say({ type: "none", at: T + 1 });
    expect(s.view.name).toBe("left");
  });

  it("in another tab is told as that", () => {
    const s = shopper().arrive(queued(), { type: "none", at: T + 1 });
    expect(s.view.name).toBe("none");
  });
});

describe("the clock", () => {
  it("is the server's, however wrong this device's is and whenever it is moved", () => {
    const s = shopper().arrive(queued());
    vi.setSystemTime(0);
    vi.advanceTimersByTime(5_000);
    expect(s.client.clock.now()).toBe(T + 5_000);
    vi.setSystemTime(T * 2);
    expect(s.client.clock.now()).toBe(T + 5_000);
  });

  it("is not set by frames that carry the time of a node", () => {
    const s = shopper().arrive(queued());
    s.socket.say(
      { type: "limited", at: T + 900_000, retry_after_ms: 60_000 },
      { type: "error", at: T + 900_000, code: "invalid", msg: "" },
    );
    expect(s.client.clock.now()).toBe(T);
  });

  it("takes the frame that was least late", () => {
    const s = shopper().arrive(queued());
    vi.advanceTimersByTime(1_000);
    s.socket.say(queued({ at: T + 400 })); // 600 ms late
    expect(s.client.clock.now()).toBe(T + 1_000);
    s.socket.say(queued({ at: T + 1_200 })); // the welcome had been 200 ms late
    expect(s.client.clock.now()).toBe(T + 1_200);
  });

  it("follows a server that was set back", () => {
    const s = shopper().arrive(queued());
    s.socket.say(turn({ at: T - 60_000 }));
    expect(s.client.clock.now()).toBe(T - 60_000);
  });
});
