import { describe, expect, it, vi } from "vitest";
import { act } from "../../src/console/act.ts";
import { Api, Problem } from "../../src/console/api.ts";
import { Checker, type Verdict } from "../../src/console/check.ts";
import { controls, enabled } from "../../src/console/controls.ts";
import { toLocal } from "../../src/console/local-time.ts";
import { ChangeLog } from "../../src/console/log.ts";
import { routeOf } from "../../src/console/route.ts";
import { Session } from "../../src/console/session.ts";
import { entry, file, sale } from "./sample.ts";

const json = (status: number, body: object, type = "application/json") =>
  new Response(JSON.stringify(body), { status, headers: { "Content-Type": type } });

function apiOf(answer: (url: string, init: RequestInit) => Response) {
  const asked: { url: string; init: RequestInit; headers: Headers }[] = [];
  const onRefused = vi.fn();
  const api = new Api({
    token: () => "s3cret",
    language: () => "zh",
    onRefused,
    fetch: async (url, init) => {
      asked.push({ url: String(url), init: init ?? {}, headers: new Headers(init?.headers) });
      return answer(String(url), init ?? {});
    },
  });
  return { api, asked, onRefused };
}

describe("the API", () => {
  it("has the token in a header and never in an address", async () => {
    const { api, asked } = apiOf(() => json(200, { sales: [], orders: [], entries: [], next: "" }));
    await api.sales();
    await api.orders("phone-x", { q: "u 1&x", status: "paid", before: "", limit: 50 });
    await api.log("phone-x", 7, 20);
    await api.put(file(), true);
    await api.line("phone-x", { rate: 5 });
    expect(asked.map(({ url }) => url)).toEqual([
      "/api/v1/admin/sales",
      "/api/v1/admin/sales/phone-x/orders?q=u+1%26x&status=paid&limit=50",
      "/api/v1/admin/audit-log?sale=phone-x&limit=20&before=7",
      "/api/v1/admin/sales/phone-x?dry_run=true",
      "/api/v1/admin/sales/phone-x/line",
    ]);
    for (const { headers, url } of asked) {
      expect(headers.get("Authorization")).toBe("Bearer s3cret");
      expect(headers.get("Accept-Language")).toBe("zh");
      expect(url).not.toContain("s3cret");
    }
    expect(asked.map(({ init }) => init.method ?? "GET")).toEqual(["GET", "GET", "GET", "PUT", "PATCH"]);
  });

  it("makes every failure a problem", async () => {
    const type = "application/problem+json";
    const refused = apiOf(() => json(409, { code: "conflict", title: "Conflict", detail: "it is closed" }, type));
    await expect(refused.api.move("x", "open")).rejects.toMatchObject({
      status: 409,
      code: "conflict",
      detail: "it is closed",
      title: "Conflict",
    });
    const proxy = apiOf(() => new Response("<h1>Bad gateway</h1>", { status: 502 }));
    await expect(proxy.api.sales()).rejects.toMatchObject({ status: 502, code: "", detail: "" });
    const away = apiOf(() => {
      throw new TypeError("no network");
    });
    await expect(away.api.sales()).rejects.toMatchObject({ status: 0, code: "unreached" });
    const odd = apiOf(() => new Response("hello"));
    await expect(odd.api.sales()).rejects.toMatchObject({ code: "unreadable" });
  });

  it("waits for an answer only so long, but for the figures", async () => {
    const late = new AbortController();
    const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(late.signal);
    const hanging = new Api({
      token: () => "t",
      language: () => "en",
      onRefused: () => {},
      fetch: (_, init) =>
        new Promise((_, reject) => {
          if (init?.signal?.aborted) reject(init.signal.reason);
          init?.signal?.addEventListener("abort", () => reject(new DOMException("late", "TimeoutError")));
        }),
    });
    const list = hanging.sales();
    late.abort();
    await expect(list).rejects.toMatchObject({ status: 0, code: "unreached" });
    expect(timeout).toHaveBeenCalledExactlyOnceWith(10_000);
    const given = new AbortController();
    const stream = hanging.live("x", given.signal);
    given.abort();
    await expect(stream).rejects.toMatchObject({ name: "TimeoutError" });
    expect(timeout).toHaveBeenCalledOnce();
    await expect(hanging.move("x", "recover")).rejects.toMatchObject({ status: 0 });
    expect(timeout).toHaveBeenLastCalledWith(70_000);
    vi.restoreAllMocks();
  });

  it("says so when the token is refused", async () => {
    const { api, onRefused } = apiOf(() => json(401, { code: "unauthenticated" }));
    await expect(api.sales()).rejects.toMatchObject({ status: 401 });
    expect(onRefused).toHaveBeenCalledOnce();
  });
});

describe("signing in", () => {
  const session = (status: number) => new Session(async () => json(status, { node: "a", code: "x", detail: "why" }));

  it("takes a token that the server takes, for as long as the tab", async () => {
    const good = session(200);
    await good.signIn("s3cret");
    expect(good.token.value).toBe("s3cret");
    expect(sessionStorage.getItem("sluice:admin")).toBe("s3cret");
    expect(localStorage.length).toBe(0);
    good.signOut();
    expect(sessionStorage.length).toBe(0);
    expect(good.refusal.value).toEqual({ kind: "out" });
  });

  it("says whether the token is wrong or something else is", async () => {
    const wrong = session(401);
    await wrong.signIn("guess");
    expect(wrong.token.value).toBe("");
    expect(wrong.refusal.value).toEqual({ kind: "wrong" });
    await wrong.signIn("令牌");
    expect(wrong.refusal.value).toEqual({ kind: "wrong" });
    const off = session(403);
    await off.signIn("guess");
    expect(off.refusal.value).toMatchObject({ kind: "problem", problem: { detail: "why" } });
  });

  it("ends when the token is refused later", async () => {
    let status = 200;
    const late = new Session(async () => json(status, { node: "a", sales: [] }));
    await late.signIn("s3cret");
    status = 401;
    await expect(late.api.sales()).rejects.toBeDefined();
    expect(late.token.value).toBe("");
    expect(late.refusal.value).toEqual({ kind: "refused" });
  });
});

describe("controls", () => {
  it("are those that make sense in the state of the sale", () => {
    expect([...enabled("open", [])]).toEqual(["pause", "close", "line", "extend", "stock", "recover"]);
    expect([...enabled("closed", [])]).toEqual(["extend", "recover", "archive"]);
    expect(enabled("paused", []).has("resume")).toBe(true);
    expect(enabled(undefined, []).size).toBe(0);
  });

  it("know from the log whether a sale will be paused when it opens", () => {
    expect(enabled("lobby", undefined).has("resume")).toBe(true);
    expect(enabled("lobby", []).has("resume")).toBe(false);
    const paused = enabled("lobby", [entry({ action: "line" }), entry({ action: "pause" })]);
    expect([paused.has("pause"), paused.has("resume")]).toEqual([false, true]);
    const unknown = enabled("scheduled", [entry({ action: "line" })], true);
    expect([unknown.has("pause"), unknown.has("resume")]).toEqual([true, true]);
  });

  it("send only what was changed", async () => {
    const { api, asked } = apiOf(() => json(200, {}));
    const fields = (values: Record<string, string>) => {
      const data = new FormData();
      for (const [name, value] of Object.entries(values)) data.set(name, value);
      return data;
    };
    for (const control of controls) {
      await act(
        api,
        sale(),
        control,
        fields({
          rate: "500",
          active: "99",
          ratio: "2.5",
          closes_at: "2031-06-01T10:00",
          "total black": "600",
          "total white": "450",
        }),
      );
    }
    const count = asked.length;
    const same = {
      rate: "500",
      active: "2000",
      ratio: "5",
      closes_at: toLocal(sale().closes_at),
      "total black": "600",
    };
    for (const control of ["line", "extend", "stock"] as const) {
      expect(await act(api, sale(), control, fields(same))).toBe(false);
    }
    expect(asked).toHaveLength(count);
    const bodies = asked.map(({ url, init }) => [url.split("/").at(-1), init.body && JSON.parse(String(init.body))]);
    expect(bodies).toEqual([
      ["open", undefined],
      ["pause", undefined],
      ["resume", undefined],
      ["close", undefined],
      ["line", { active: 99, ratio: 2.5 }],
      ["extend", { closes_at: new Date("2031-06-01T10:00").toISOString() }],
      ["stock", { item: "white", total: 450 }],
      ["recover", undefined],
      ["archive", undefined],
    ]);
  });
});

describe("checking while typing", () => {
  it("asks once typing rests, and only the newest answer counts", async () => {
    vi.useFakeTimers();
    const told: Verdict["kind"][] = [];
    let asked = 0;
    const put = async () => {
      asked++;
      if (asked === 1) throw { status: 422 } as Problem;
      return sale();
    };
    const checker = new Checker({ put }, ({ kind }) => told.push(kind));
    checker.check(file(), false, new Set());
    checker.check(file({ limit: 2 }), false, new Set());
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked).toBe(1);
    expect(told).toEqual(["checking", "checking", "problem"]);
    checker.check(file({ limit: 3 }), false, new Set());
    await vi.advanceTimersByTimeAsync(1000);
    expect(told.at(-1)).toBe("sound");
    checker.check(file({ id: "Not An Id" }), false, new Set());
    checker.check(file(), false, new Set(["phone-x"]));
    checker.check(file(), true, new Set());
    await vi.advanceTimersByTimeAsync(1000);
    expect(told.slice(-3)).toEqual(["id", "taken", "unchanged"]);
    expect(asked).toBe(2);
    vi.useRealTimers();
  });

  it("asks again by itself when the server was not there, and not when it said no", async () => {
    vi.useFakeTimers();
    const answers = [new Problem(0, "unreached", ""), new Problem(503, "unavailable", ""), undefined];
    const told: Verdict["kind"][] = [];
    const put = vi.fn(async () => {
      const answer = answers.shift();
      if (answer) throw answer;
      return sale();
    });
    const checker = new Checker({ put }, ({ kind }) => told.push(kind));
    checker.check(file(), false, new Set());
    await vi.advanceTimersByTimeAsync(20_000);
    expect(told).toEqual(["checking", "problem", "problem", "sound"]);
    answers.push(new Problem(422, "invalid", "no"), undefined);
    checker.check(file(), false, new Set());
    await vi.advanceTimersByTimeAsync(20_000);
    expect(told.at(-1)).toBe("problem");
    expect(put).toHaveBeenCalledTimes(4);
    vi.useRealTimers();
  });

  it("finds nothing sound while it is not known which ids are taken", async () => {
    vi.useFakeTimers();
    const told: Verdict["kind"][] = [];
    const checker = new Checker({ put: async () => sale() }, ({ kind }) => told.push(kind));
    checker.check(file(), false, undefined);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(told).toEqual(["checking"]);
    vi.useRealTimers();
  });
});

describe("the log of changes", () => {
  const ids = (log: ChangeLog) => log.entries.value?.map(({ id }) => id);

  it("grows at both ends, without a hole and without repeats", async () => {
    let all = [5, 4, 3, 2, 1];
    const page = async (_: string, before: number) => {
      const rest = all.filter((id) => before === 0 || id < before).slice(0, 2);
      const last = rest.at(-1) ?? 0;
      return { entries: rest.map((id) => entry({ id })), next: last > 1 ? last : 0 };
    };
    const log = new ChangeLog({ log: page }, "phone-x");
    await log.refresh();
    await log.older();
    expect(ids(log)).toEqual([5, 4, 3, 2]);
    all = [6, ...all];
    await log.refresh();
    expect(ids(log)).toEqual([6, 5, 4, 3, 2]);
    await log.older();
    expect(ids(log)).toEqual([6, 5, 4, 3, 2, 1]);
    expect(log.more.value).toBe(false);
    all = [12, 11, 10, 9, 8, 7, ...all];
    await log.refresh();
    expect(ids(log)).toEqual([12, 11]);
    await log.older();
    expect(ids(log)).toEqual([12, 11, 10, 9]);
  });

  it("takes a page that was asked for twice once, and no answer that is overtaken", async () => {
    const answers: (() => void)[] = [];
    const page = (ids: number[], next: number) => ({ entries: ids.map((id) => entry({ id })), next });
    let list = [5, 4];
    const log = new ChangeLog(
      {
        log: (_, before) => {
          const found = before ? page([3, 2], 2) : page(list, 4);
          return new Promise((resolve) => answers.push(() => resolve(found)));
        },
      },
      "phone-x",
    );
    const first = log.refresh();
    list = [6, 5, 4];
    const second = log.refresh();
    answers[1]?.();
    await second;
    answers[0]?.();
    await first;
    expect(ids(log)).toEqual([6, 5, 4]);
    const older = [log.older(), log.older()];
    for (const answer of answers.slice(2)) answer();
    await Promise.all(older);
    expect(answers).toHaveLength(3);
    expect(ids(log)).toEqual([6, 5, 4, 3, 2]);
  });

  it("keeps what it has when it cannot be read", async () => {
    let down = false;
    const log = new ChangeLog(
      {
        log: async () => {
          if (down) throw new Error("down");
          return { entries: [entry()], next: 0 };
        },
      },
      "phone-x",
    );
    await log.refresh();
    down = true;
    await log.refresh();
    expect(ids(log)).toEqual([1]);
    expect(log.problem.value?.code).toBe("unreached");
  });
});

describe("addresses", () => {
  it("lead to a page and a part of it", () => {
    expect(routeOf("/admin", "")).toEqual({ page: "sales", part: "list" });
    expect(routeOf("/admin/", "#new")).toEqual({ page: "sales", part: "new" });
    expect(routeOf("/admin/s/phone-x", "")).toEqual({ page: "sale", sale: "phone-x", part: "live" });
    expect(routeOf("/admin/s/phone-x/", "#orders")).toEqual({ page: "sale", sale: "phone-x", part: "orders" });
    expect(routeOf("/admin/s/phone-x", "#what")).toMatchObject({ part: "live" });
    expect(routeOf("/admin/s/Phone", "")).toEqual({ page: "nowhere" });
  });
});
