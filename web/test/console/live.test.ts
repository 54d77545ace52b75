import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Problem } from "../../src/console/api.ts";
import { Live } from "../../src/console/live.ts";
import { frame, T } from "./sample.ts";

/** A server that can be told what to send, and when to break off. */
function stage() {
  const streams: { send: (text: string) => void; end: () => void; fail: () => void }[] = [];
  let refusal: Problem | undefined;
  const api = {
    live: async (_: string, signal: AbortSignal) => {
      if (refusal) throw refusal;
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          const fail = () => controller.error(new Error("broken"));
          signal.addEventListener("abort", fail);
          streams.push({
            send: (text) => controller.enqueue(new TextEncoder().encode(text)),
            end: () => controller.close(),
            fail,
          });
        },
      });
      return new Response(body);
    },
  };
  let now = 0;
  const live = new Live(api, "phone-x", () => now);
  const pass = async (ms: number) => {
    for (let i = 0; i < ms; i += 500) {
      now += 500;
      await vi.advanceTimersByTimeAsync(500);
    }
  };
  const tell = (at = T) => streams.at(-1)?.send(`data: ${JSON.stringify(frame({ at }))}\n\n`);
  return { live, streams, pass, tell, refuse: (problem?: Problem) => (refusal = problem) };
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("live figures", () => {
  it("come in, and grow old when nothing follows", async () => {
    const { live, tell, pass } = stage();
    live.start();
    await pass(500);
    tell();
    await pass(500);
    expect(live.sale.value?.id).toBe("phone-x");
    expect(live.link.value).toBe("open");
    await pass(4500);
    expect(live.quiet.value).toBeGreaterThanOrEqual(4500);
    tell(T + 5000);
    await pass(500);
    expect(live.quiet.value).toBeLessThan(1000);
    expect(live.history.at, "with a gap where none came").toEqual([T / 1000, T / 1000 + 0.5, T / 1000 + 5]);
    live.stop();
  });

  it("are asked for again after the stream ended, and kept meanwhile", async () => {
    const { live, streams, tell, pass } = stage();
    live.start();
    await pass(500);
    tell();
    streams[0]?.end();
    await pass(500);
    expect(live.link.value).toBe("waiting");
    expect(live.frame.value).toBeDefined();
    await pass(2500);
    expect(streams).toHaveLength(2);
    tell(T + 3000);
    await pass(500);
    expect(live.link.value).toBe("open");
    live.stop();
  });

  it("are given up when the stream says nothing for long, and tried at once when asked to", async () => {
    const { live, streams, pass } = stage();
    live.start();
    await pass(11_000);
    expect(live.link.value).toBe("waiting");
    live.retry();
    await pass(500);
    expect(streams).toHaveLength(2);
    live.stop();
  });

  it("wait longer each time that the server does not answer, but never long", async () => {
    const { live, refuse, pass } = stage();
    refuse(new Problem(503, "unavailable", "the database is down"));
    live.start();
    await pass(500);
    expect(live.problem.value?.detail).toBe("the database is down");
    const first = live.retryIn.value;
    await pass(60_000);
    expect(live.retryIn.value).toBeLessThanOrEqual(10_000);
    expect(first).toBeLessThanOrEqual(1500);
    live.stop();
  });

  it("end where there is no such sale, or no way in", async () => {
    const gone = stage();
    gone.refuse(new Problem(404, "no_such_sale", ""));
    gone.live.start();
    await gone.pass(500);
    expect(gone.live.gone.value).toBe(true);
    expect(gone.live.link.value).toBe("ended");
    const out = stage();
    out.refuse(new Problem(401, "unauthenticated", ""));
    out.live.start();
    await out.pass(500);
    expect(out.live.gone.value).toBe(false);
    expect(out.live.link.value).toBe("ended");
  });

  it("keep a sale that a frame does not know", async () => {
    const { live, streams, tell, pass } = stage();
    live.start();
    await pass(500);
    tell();
    streams[0]?.send(`data: ${JSON.stringify(frame({ at: T + 1000, sale: null, line: null }))}\n\n`);
    await pass(500);
    expect(live.frame.value?.at).toBe(T + 1000);
    expect(live.sale.value?.id).toBe("phone-x");
    expect(live.history.column("item black")).toEqual([412, null]);
    live.stop();
  });

  it("grow old when frames go on with a moment that stands still", async () => {
    const { live, tell, pass } = stage();
    live.start();
    await pass(500);
    tell();
    for (let i = 0; i < 6; i++) {
      await pass(1000);
      tell();
    }
    await pass(500);
    expect(live.link.value).toBe("open");
    expect(live.stale.value).toBe(true);
    live.stop();
  });

  it("outlive a frame that cannot be read", async () => {
    const { live, streams, tell, pass } = stage();
    live.start();
    await pass(500);
    streams[0]?.send("data: {broken\n\n");
    tell();
    await pass(500);
    expect(live.frame.value?.at).toBe(T);
    live.stop();
  });
});
