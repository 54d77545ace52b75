import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { order, queued, shopper, welcome } from "./stage.ts";

type Answer = { status: number; body?: object; headers?: Record<string, string> } | "lost";

let asked: string[] = [];
let answers: Answer[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  vi.stubGlobal(
    "fetch",
    async (url: string, { method = "GET", headers }: { method?: string; headers: { Authorization: string } }) => {
      asked.push(`${method} ${url} ${headers.Authorization}`);
      const answer = answers.shift();
      if (!answer || answer === "lost") throw new TypeError("network");
      return new Response(JSON.stringify(answer.body ?? {}), { status: answer.status, headers: answer.headers ?? {} });
    },
  );
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const bought = () => {
  const s = shopper();
  s.arrive({ type: "order", at: 1, order: order("confirmed", { pay_by: 9e15 }) });
  return s;
};
const of = "http://shop/api/v1/orders/order-1";

async function settle(doing: Promise<void>) {
  await vi.runAllTimersAsync();
  await doing;
}

describe("an order", () => {
  it("is paid with the token of its user, and is paid then", async () => {
    const s = bought();
    answers = [{ status: 200, body: order("paid") }];
    const doing = s.client.pay();
    expect(s.client.state.changing).toBe("pay");
    await settle(doing);
    expect(asked).toEqual([`POST ${of}/pay?sale=phone-x Bearer token`]);
    expect(s.client.state).toMatchObject({ changing: undefined, view: { name: "order", order: { status: "paid" } } });
  });

  it("is cancelled, and is still asked for on the next visit", async () => {
    const s = bought();
    expect(s.kept.memory.order).toBe("order-1");
    answers = [{ status: 200, body: order("cancelled") }];
    await settle(s.client.cancel());
    expect(asked).toEqual([`POST ${of}/cancel?sale=phone-x Bearer token`]);
    expect(s.view).toMatchObject({ name: "order", order: { status: "cancelled" } });
    expect(s.kept.memory.order).toBe("order-1");
  });

  it("is asked for again when the answer is lost or refused for the moment, and no sooner than the server wants", async () => {
    const s = bought();
    answers = [
      "lost",
      { status: 503, headers: { "Retry-After": "40" } },
      { status: 429 },
      { status: 200, body: order("paid") },
    ];
    const doing = s.client.pay();
    await vi.advanceTimersByTimeAsync(40_000);
    expect(asked).toHaveLength(2);
    await settle(doing);
    expect(asked).toHaveLength(4);
    expect(s.view).toMatchObject({ order: { status: "paid" } });
  });

  it("that does not allow it any more is shown as it is", async () => {
    const s = bought();
    answers = [{ status: 409 }, { status: 200, body: order("expired") }];
    await settle(s.client.pay());
    expect(asked[1]).toBe(`GET ${of}?sale=phone-x Bearer token`);
    expect(s.view).toMatchObject({ order: { status: "expired" } });
  });

  it("stays as it is when no answer can be had, and says so", async () => {
    const s = bought();
    answers = ["lost", "lost", "lost", "lost"];
    await settle(s.client.pay());
    expect(s.client.state).toMatchObject({
      changing: undefined,
      notice: { kind: "unanswered" },
      view: { order: { status: "confirmed" } },
    });
  });

  it("that is not ours to change says so, and is not asked for again", async () => {
    const s = bought();
    answers = [{ status: 403 }];
    await settle(s.client.pay());
    expect(asked).toHaveLength(1);
    expect(s.client.state.notice).toMatchObject({ kind: "error" });
  });

  it("whose cancellation is answered late leaves a new place alone", async () => {
    const s = bought();
    answers = ["lost", { status: 200, body: order("cancelled") }];
    const doing = s.client.cancel();
    s.socket.say({ type: "order", at: 2, order: order("cancelled") });
    s.client.join();
    s.socket.say(welcome(), queued());
    await settle(doing);
    expect(s.view.name).toBe("queued");
    expect(s.client.state.changing).toBeUndefined();
    expect(s.kept.memory.order).toBeUndefined();
  });

  it("is changed by one request at a time, and nothing is done without one", async () => {
    const s = bought();
    answers = [{ status: 200, body: order("paid") }];
    const doing = s.client.pay();
    await s.client.cancel();
    await settle(doing);
    expect(asked).toHaveLength(1);
    const waiting = shopper();
    waiting.arrive();
    await waiting.client.pay();
    expect(asked).toHaveLength(1);
  });

  it("that was told paid over the socket meanwhile does not go back", async () => {
    const s = bought();
    answers = [{ status: 200, body: order("confirmed") }];
    const doing = s.client.pay();
    s.socket.say({ type: "order", at: 2, order: order("paid") });
    await settle(doing);
    expect(s.view).toMatchObject({ order: { status: "paid" } });
  });
});
