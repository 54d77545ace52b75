import { readFileSync } from "node:fs";
import { signal } from "@preact/signals";
import { type ComponentChild, render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { choose } from "../../src/choose.ts";
import { act as doIt } from "../../src/console/act.ts";
import { Api, Problem } from "../../src/console/api.ts";
import type { Control } from "../../src/console/controls.ts";
import { History } from "../../src/console/history.ts";
import { language, languages, speak } from "../../src/console/lang/index.ts";
import type { Live } from "../../src/console/live.ts";
import type { ChangeLog } from "../../src/console/log.ts";
import { Session } from "../../src/console/session.ts";
import { now } from "../../src/console/ticking.ts";
import type { About, LiveFrame, LogEntry, OrderRow, Sale, SaleFile } from "../../src/console/types.ts";
import { Chart } from "../../src/console/views/chart.tsx";
import { Controls } from "../../src/console/views/controls.tsx";
import { LiveView } from "../../src/console/views/live.tsx";
import { NodesPanel } from "../../src/console/views/nodes.tsx";
import { OrdersView } from "../../src/console/views/orders.tsx";
import { SalePage } from "../../src/console/views/sale.tsx";
import { SaleHead } from "../../src/console/views/sale-head.tsx";
import { SalesPage, SalesView } from "../../src/console/views/sales.tsx";
import { NewSalePage, Settings } from "../../src/console/views/settings.tsx";
import { Shell } from "../../src/console/views/shell.tsx";
import { SignIn } from "../../src/console/views/sign-in.tsx";
import { troubleWords } from "../../src/console/views/words.ts";
import { entry, file, frame, node, sale, T } from "./sample.ts";

// There is no canvas here. What a chart says in words is looked at all the same.
const drawn = vi.hoisted(() => [] as { hooks: { setCursor: ((plot: unknown) => void)[] } }[]);
vi.mock("uplot", () => ({
  default: class {
    constructor(options: (typeof drawn)[number]) {
      drawn.push(options);
    }
    setData() {}
    setSize() {}
    destroy() {}
  },
}));

let root: HTMLElement;
beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
  now.value = T;
});
afterEach(() => {
  act(() => render(null, root));
  root.remove();
});

const text = () => root.textContent ?? "";
const button = (words: string) => [...root.querySelectorAll("button")].find((b) => b.textContent?.includes(words));
const press = (element: Element | null | undefined) => act(() => (element as HTMLElement).click());
const settle = () => act(async () => void (await new Promise((resolve) => setTimeout(resolve, 20))));

function show(tag: string, view: ComponentChild): string {
  language.value = speak(tag);
  act(() => render(view, root));
  return text();
}

const api = { put: async () => sale(), sale: async () => sale() };

const about: About = {
  node: "a",
  version: "1.2.0",
  broker_ui_url: "https://rabbit.example/",
  limits: { user: "20/s", address: "", node: "5000/s" },
  payment: "demo",
  time: T,
};

function liveOf(
  shown: LiveFrame | undefined,
  change: Partial<Record<"quiet" | "retryIn", number>> & { link?: string } = {},
) {
  const history = new History();
  if (shown) {
    history.add(
      frame({ ...shown, at: shown.at - 1000, nodes: shown.nodes.map((n) => ({ ...n, at: n.at - 1000, grabs: {} })) }),
    );
    history.add(shown);
  }
  return {
    frame: signal(shown),
    sale: signal(shown?.sale ?? undefined),
    quiet: signal(change.quiet ?? 0),
    stale: signal((change.quiet ?? 0) > 3000),
    retryIn: signal(change.retryIn ?? 0),
    link: signal(change.link ?? "open"),
    problem: signal(undefined),
    gone: signal(false),
    history,
    retry: vi.fn(),
  } as unknown as Live;
}

function logOf(entries: LogEntry[] | undefined) {
  return {
    entries: signal(entries),
    more: signal(false),
    problem: signal(undefined),
    older: vi.fn(),
  } as unknown as ChangeLog;
}

const changed = entry({ action: "stock", after: file({ items: file().items.map((i) => ({ ...i, stock: 700 })) }) });
const live = (shown: LiveFrame, log = [changed]) => <LiveView live={liveOf(shown)} log={logOf(log)} about={about} />;

/** Every view: what is rendered, and what has to be read there in English and in Chinese. */
const views: Record<string, [() => ComponentChild, string[], string[]]> = {
  "live figures": [
    () => live(frame()),
    [
      "18,240",
      "3 recalled, next in line",
      "1,985",
      "at most 2,000",
      "5,210",
      "of 23,450 given",
      "10,000",
      "9,800 in this sale",
    ],
    ["18,240", "3 人返回原位，优先放行", "上限 2,000", "共发出 23,450 个", "其中本活动 9,800"],
  ],
  charts: [
    () => live(frame()),
    ["Turns and grabs a second", "600/s", "Sold out", "Stock left", "Orders on their way", "Last 10 minutes"],
    ["每秒放行与抢购", "600/秒", "已抢完", "剩余库存", "途中的订单"],
  ],
  stock: [() => live(frame()), ["412 left of 600", "0 left of 400", "59%"], ["剩 412，共 600", "59%"]],
  "the way of orders": [
    () => live(frame()),
    ["8 units on the way", "588", "580", "No dead letters", "RabbitMQ management"],
    ["8 件在途中", "没有死信", "RabbitMQ 管理页面"],
  ],
  "dead letters": [
    () => live(frame({ orders: { taken: 1, written: 0, outbox: 0, broker: null, dead: 1 } })),
    ["1 dead letter", "sluice dead list", "No broker, or it does not answer"],
    ["1 封死信", "没有消息队列，或它没有应答"],
  ],
  "an audit that holds": [() => live(frame()), ["Balanced", "4 sec ago"], ["账目相符", "4秒前"]],
  "an audit that does not": [
    () =>
      live(
        frame({
          audit: {
            at: T - 90_000,
            balanced: false,
            imbalance: { black: 2, white: 0 },
            problems: ["black: 5 and 6 do not make 12"],
          },
        }),
      ),
    ["Does not add up", "black: 2 units do not add up", "do not make 12", "This audit is old"],
    ["账目不符", "black：2 件对不上", "这次对账已经过时"],
  ],
  "an audit of a closed sale": [
    () =>
      live(
        frame({
          sale: sale({ state: "closed" }),
          audit: { at: T - 420_000, balanced: true, imbalance: null, problems: null },
        }),
      ),
    ["it should run every 5 min."],
    ["每 5分钟一次"],
  ],
  "no audit": [() => live(frame({ audit: null })), ["No audit is known"], ["没有已知的对账结果"]],
  "no audit of a sale to come": [
    () => live(frame({ audit: null, sale: sale({ state: "scheduled" }) })),
    ["Not audited yet"],
    ["尚未对账"],
  ],
  nodes: [
    () => (
      <NodesPanel
        nodes={[node(), node({ node: "b", at: T - 3_600_000 })]}
        now={T}
        heard={(node) => (node === "b" ? T - 9000 : T)}
      />
    ),
    ["9,100", "60m", "9s ago"],
    ["60分钟", "9秒前"],
  ],
  "no nodes": [() => live(frame({ nodes: [] })), ["No node reports itself"], ["没有节点上报"]],
  limits: [() => live(frame()), ["Each user", "20/s", "off", "14"], ["每个用户", "关闭"]],
  changes: [
    () => live(frame()),
    ["Stock changed", "Stock (black)", "600", "700", "Stock (white)"],
    ["调整库存", "库存（black）"],
  ],
  "a sale that was made": [
    () => live(frame(), [entry({ action: "apply", before: null })]),
    ["Settings applied", "Made with 2 items, 1,000 units"],
    ["新建：2 种商品，共 1,000 件"],
  ],
  troubles: [
    () => live(frame({ troubles: ["xx", "the database cannot be asked"] })),
    ["What cannot be read", "xx", "The database cannot be asked."],
    ["目前无法读取的内容", "xx", "无法查询数据库。"],
  ],
  "nothing known": [
    () =>
      live(
        frame({
          sale: sale({ items: [{ id: "main", stock: 5 }], waiting: undefined } as never),
          line: null,
          orders: { taken: null, written: null, outbox: null, broker: null, dead: null },
          nodes: [],
          audit: null,
        }),
      ),
    ["– left of 5", "– of 5"],
    ["剩 –，共 5"],
  ],
  "a sale that cannot be read": [
    () =>
      live(
        frame({
          sale: null,
          line: null,
          audit: { at: T, balanced: true, imbalance: null, problems: null },
          troubles: ["xx"],
        }),
      ),
    ["What cannot be read", "xx"],
    ["目前无法读取的内容"],
  ],
  "a sale without a line": [
    () => live(frame({ sale: sale({ line: { ...sale().line, order: "off" } }) })),
    ["no line: grabs go straight to stock"],
    ["不排队：直接抢库存"],
  ],
  "the head of a sale": [
    () => <SaleHead id="phone-x" name="X" sale={sale({ stock: "held" })} part="live" live={liveOf(frame())} />,
    ["Open", "All held", "Closes in", "1:00:00", "Live", "Orders", "Settings"],
    ["进行中", "已全部预留", "距结束", "1:00:00", "实时", "订单", "设置"],
  ],
  "a sale before it opens": [
    () => (
      <SaleHead
        id="phone-x"
        name="X"
        sale={sale({ state: "lobby", opens_at: new Date(T + 65_000).toISOString() })}
        part="live"
        live={liveOf(frame())}
      />
    ),
    ["Lobby", "Opens in", "1:05"],
    ["等候入场", "距开售"],
  ],
  "figures that are old": [
    () => (
      <SaleHead
        id="phone-x"
        name="X"
        sale={sale()}
        part="live"
        live={liveOf(frame(), { quiet: 5200, link: "waiting", retryIn: 2400 })}
      />
    ),
    ["No fresh figures for 5 sec.", "from before", "Trying again in 2 sec.", "Try now"],
    ["已有 5秒没有新数据。", "之前的数据", "2秒后重试", "立即重试"],
  ],
  "the list of sales": [
    () => <SalesView sales={[sale({ id: "b", state: "closed" }), sale({ id: "a" })]} age={0} />,
    ["Phone X", "588 of 1,000", "18,240", "48", "Closed", "New sale"],
    ["手机 X", "588 / 1,000", "已结束", "新建活动"],
  ],
  "a list while the database is away": [
    () => <SalesView sales={[sale()]} incomplete age={0} />,
    ["The database does not answer", "there may be others", "Phone X"],
    ["数据库没有应答", "手机 X"],
  ],
  "an old list": [
    () => <SalesView sales={[]} age={12_000} />,
    ["12 sec old", "no sale yet"],
    ["12秒前的", "还没有活动"],
  ],
  "a list that cannot be read": [
    () => <SalesView sales={undefined} problem={new Problem(0, "unreached", "")} age={0} />,
    ["cannot be reached"],
    ["无法连接服务器"],
  ],
  "a new sale": [
    () => <Settings api={api} taken={new Set()} onSaved={() => {}} />,
    ["Give the sale an id", "Add an item", "Make the sale", "fifo: by arrival", "1 of at most 50 items"],
    ["请先填写活动标识", "添加商品", "新建活动", "抽签"],
  ],
  "settings of a live sale": [
    () => <Settings api={api} sale={sale({ id: "s1", access: {} })} taken={new Set()} onSaved={() => {}} />,
    ["Nothing is changed", "cannot change any more", "access rules of this sale are kept", "Save"],
    ["没有改动", "已不能更改", "准入规则保持不变"],
  ],
};

describe.each(["en", "zh"])("in %s", (tag) => {
  it.each(Object.entries(views))("%s says what it has to", (_, [view, en, zh]) => {
    const said = show(tag, view());
    for (const words of tag === "en" ? en : zh) expect(said).toContain(words);
    expect(said).not.toMatch(/undefined|NaN|\[object/);
    if (tag === "zh") {
      const known =
        /black: 5 and 6 do not make 12|sluice( \w+)+|RabbitMQ|Redis|English|Phone X|X|phone-x|black|white|admin|main|fifo|lottery|off|UTC|CNY|xx/g;
      expect(said.replace(known, ""), "left in English").not.toMatch(/[A-Za-z]{3,}/);
    }
  });

  it("what stands around the page has a way out", () => {
    const session = new Session(async () => new Response("{}"));
    session.token.value = "t";
    session.about.value = about;
    const said = show(tag, <Shell session={session}>x</Shell>);
    expect(said).toContain(tag === "en" ? "Node a, version 1.2.0" : "节点 a，版本 1.2.0");
    press(button(languages[tag]?.signOut ?? ""));
    expect(session.token.value).toBe("");
  });

  it("a wrong token is said in one sentence", async () => {
    const session = new Session(async () => new Response("{}", { status: 401 }));
    show(tag, <SignIn session={session} />);
    (root.querySelector("input") as HTMLInputElement).value = "guess";
    act(() => root.querySelector("form")?.requestSubmit());
    await settle();
    expect(root.querySelector("[role=alert]")?.textContent).toBe(languages[tag]?.wrongToken);
  });
});

describe("what the server says in English", () => {
  it("is marked so, and told after what can be said in another language", () => {
    const problem = new Problem(409, "conflict", "it is closed", "当前状态不允许此操作");
    const view = () => <SalesView sales={[]} problem={problem} age={0} />;
    show("zh", view());
    expect(root.querySelector("[role=alert]")?.textContent).toBe("当前状态不允许此操作：it is closed");
    expect(root.querySelector("[role=alert] [lang=en]")?.textContent).toBe("it is closed");
    show("en", view());
    expect(root.querySelector("[role=alert]")?.textContent).toBe("it is closed");
    const audit = { at: T, balanced: false, imbalance: null, problems: ["5 and 6 do not make 12"] };
    show("zh", live(frame({ audit, troubles: ["something new"] })));
    expect(root.querySelector(".audit [lang=en]")?.textContent).toBe("5 and 6 do not make 12");
    expect(root.querySelector(".troubles [lang=en]")?.textContent).toBe("something new");
  });

  it("is known to the console as far as it is the same every time", () => {
    const written = readFileSync("../server/liveframe.go", "utf8");
    const sentences = [...written.matchAll(/(?:trouble: |f\.Troubles, )"([^"]+)"/g)].map(([, sentence]) => sentence);
    expect(sentences).toHaveLength(4);
    for (const sentence of sentences) expect(troubleWords(String(sentence), speak("zh"))).toBeDefined();
  });
});

describe("an audit of a closed sale", () => {
  it("is not old for five minutes", () => {
    const audit = { at: T - 290_000, balanced: true, imbalance: null, problems: null };
    expect(show("en", live(frame({ audit, sale: sale({ state: "closed" }) })))).not.toContain("This audit is old");
    expect(show("en", live(frame({ audit })))).toContain("This audit is old: it should run every 10 sec.");
  });
});

describe("controls", () => {
  it("ask first, say what will happen, and show why the server refuses", async () => {
    const doing = vi.fn(async () => {
      throw new Problem(409, "conflict", "it is too late to pause it");
    });
    show("en", <Controls sale={sale()} log={[]} act={doing} />);
    expect(button("Open")?.disabled).toBe(true);
    press(button("Pause"));
    expect(doing).not.toHaveBeenCalled();
    expect(root.querySelector("dialog")?.textContent).toContain("No turn is given and no grab is taken");
    act(() => root.querySelector<HTMLFormElement>("dialog form")?.requestSubmit());
    await settle();
    expect(doing).toHaveBeenCalledOnce();
    expect(root.querySelector("dialog [role=alert]")?.textContent).toContain("it is too late to pause it");
  });

  it("close the dialog once it is done", async () => {
    const doing = vi.fn(async () => {});
    show("en", <Controls sale={sale()} log={[]} act={doing} />);
    press(button("Line…"));
    const rate = root.querySelector<HTMLInputElement>("[name=rate]");
    expect(rate?.value).toBe("500");
    act(() => root.querySelector<HTMLFormElement>("dialog form")?.requestSubmit());
    await settle();
    expect(doing.mock.calls[0]).toBeDefined();
    expect(root.querySelector("dialog")).toBeNull();
  });
});

describe("dialogs", () => {
  it("change nothing that another operator changed while they were open", async () => {
    const sent: [string, unknown][] = [];
    const api = new Api({
      token: () => "t",
      language: () => "en",
      onRefused: () => {},
      fetch: async (url, init) => {
        sent.push([String(url).split("/").at(-1) ?? "", JSON.parse(String(init?.body))]);
        return new Response("{}");
      },
    });
    const did: boolean[] = [];
    const doing = async (control: Control, asked: Sale, fields: FormData) => {
      did.push(await doIt(api, asked, control, fields));
    };
    const controls = (change: Partial<Sale> = {}) => <Controls sale={sale(change)} log={[]} act={doing} />;
    const { line, items } = sale();
    for (const words of ["Line…", "Closing time…", "Stock…"]) {
      show("en", controls());
      press(button(words));
      show(
        "en",
        controls({
          line: { ...line, active: 77 },
          closes_at: "2031-05-17T14:00:00Z",
          items: items.map((item) => ({ ...item, stock: item.stock + 50 })),
        }),
      );
      const rate = root.querySelector<HTMLInputElement>("[name=rate]");
      if (rate) rate.value = "9";
      act(() => root.querySelector<HTMLFormElement>("dialog form")?.requestSubmit());
      await settle();
    }
    expect(sent).toEqual([["line", { rate: 9 }]]);
    expect(did).toEqual([true, false, false]);
  });

  it("stay until the server has answered", async () => {
    let refuse = (_: Problem) => {};
    const doing = () =>
      new Promise<void>((_, reject) => {
        refuse = reject;
      });
    show("en", <Controls sale={sale()} log={[]} act={doing} />);
    press(button("Pause"));
    act(() => root.querySelector<HTMLFormElement>("dialog form")?.requestSubmit());
    expect(button("Cancel")?.disabled).toBe(true);
    const cancel = new Event("cancel", { cancelable: true });
    act(() => void root.querySelector("dialog")?.dispatchEvent(cancel));
    expect(cancel.defaultPrevented).toBe(true);
    act(() => root.querySelector("dialog")?.close());
    expect(root.querySelector("dialog")?.open).toBe(true);
    refuse(new Problem(409, "conflict", "it is too late"));
    await settle();
    expect(root.querySelector("dialog [role=alert]")?.textContent).toContain("it is too late");
    press(button("Cancel"));
    await settle();
    expect(root.querySelector("dialog")).toBeNull();
  });
});

describe("settings", () => {
  const field = (words: string) => {
    const label = [...root.querySelectorAll("label")].find((l) => (l.querySelector("span") ?? l).textContent === words);
    return label?.control as HTMLInputElement | null | undefined;
  };
  const type = async (name: string, value: string) => {
    const input = field(name) as HTMLInputElement;
    input.value = value;
    await act(() => void input.dispatchEvent(new Event("input", { bubbles: true })));
    await act(async () => void (await vi.advanceTimersByTimeAsync(1000)));
  };

  it("are checked by the server, whose sentence stands beside the form, and saved", async () => {
    vi.useFakeTimers();
    const put = vi.fn(async (written: { limit: number }, _dryRun: boolean) => {
      if (written.limit > 1000) throw new Problem(422, "invalid", "limit must be from 1 to 1000");
      return sale({ id: "s2", state: "scheduled", limit: written.limit });
    });
    const saved = vi.fn();
    show(
      "en",
      <Settings
        api={{ ...api, put } as never}
        sale={sale({ id: "s2", state: "scheduled" })}
        taken={new Set()}
        onSaved={saved}
      />,
    );
    await type("Limit per order", "5000");
    expect(text()).toContain("limit must be from 1 to 1000");
    expect(button("Save")?.disabled).toBe(true);
    await type("Limit per order", "2");
    expect(text()).toContain("The server would accept this");
    expect(root.querySelector(".differences")?.textContent).toContain("Limit per order");
    act(() => root.querySelector("form")?.requestSubmit());
    await act(async () => void (await vi.advanceTimersByTimeAsync(1000)));
    expect(put).toHaveBeenLastCalledWith(expect.objectContaining({ limit: 2 }), false);
    expect(saved).toHaveBeenCalledOnce();
    expect(text()).toContain("Saved.");
    vi.useRealTimers();
  });

  it("leave alone what a live sale cannot change", () => {
    show("en", <Settings api={api} sale={sale({ id: "s3" })} taken={new Set()} onSaved={() => {}} />);
    for (const name of ["Id", "Opens", "Lobby", "Order of the line", "Limit per order"])
      expect(field(name)?.disabled).toBe(true);
    for (const name of ["Closes", "Rate", "Turn", "Grace", "Hold", "Stock in total"])
      expect(field(name)?.disabled).toBe(false);
    expect(button("Add an item")?.disabled).toBe(true);
  });

  it("follow the sale until they are touched", () => {
    const put = async () => sale();
    const settings = (limit: number) => (
      <Settings
        api={{ ...api, put }}
        sale={sale({ id: "s4", state: "scheduled", limit })}
        taken={new Set()}
        onSaved={() => {}}
      />
    );
    show("en", settings(1));
    show("en", settings(3));
    expect(field("Limit per order")?.value).toBe("3");
    const hold = field("Hold") as HTMLInputElement;
    hold.value = "1h";
    act(() => void hold.dispatchEvent(new Event("input", { bubbles: true })));
    show("en", settings(4));
    expect(field("Limit per order")?.value, "was not touched").toBe("4");
    expect(hold.value).toBe("1h");
    const list = root.querySelector(".differences")?.textContent;
    expect(list).toContain("Hold");
    expect(list, "nothing of another operator is taken back").not.toContain("Limit");
  });

  it("follow the sale again once it has come back as it was saved", async () => {
    vi.useFakeTimers();
    const before = { id: "s5", state: "scheduled" } as const;
    const put = vi.fn(async (written: SaleFile) => sale({ ...before, limit: written.limit }));
    const settings = (change: Partial<Sale> = {}) => (
      <Settings api={{ ...api, put }} sale={sale({ ...before, ...change })} taken={new Set()} onSaved={() => {}} />
    );
    show("en", settings());
    await type("Limit per order", "2");
    act(() => root.querySelector("form")?.requestSubmit());
    await act(async () => void (await vi.advanceTimersByTimeAsync(100)));
    show("en", settings());
    expect(field("Limit per order")?.value, "these figures are from before").toBe("2");
    show("en", settings({ limit: 2 }));
    expect(text()).toContain("Saved.");
    show("en", settings({ limit: 2, hold: "20m0s" }));
    expect(field("Hold")?.value).toBe("20m");
    expect(text()).not.toContain("Saved.");
    await type("Limit per order", "7");
    act(() => root.querySelector("form")?.requestSubmit());
    await act(async () => void (await vi.advanceTimersByTimeAsync(100)));
    expect(put).toHaveBeenLastCalledWith(expect.objectContaining({ limit: 7, hold: "20m" }), false);
    show("en", settings({ limit: 5 }));
    await act(async () => void (await vi.advanceTimersByTimeAsync(11_000)));
    show("en", settings({ limit: 5 }));
    expect(field("Limit per order")?.value, "somebody else was faster").toBe("5");
    vi.useRealTimers();
  });

  it("make no sale over another one", async () => {
    vi.useFakeTimers();
    const written: string[] = [];
    const put = async (file: SaleFile, dryRun: boolean) => {
      if (!dryRun) written.push(file.id);
      return sale({ id: file.id });
    };
    let answer: Problem | undefined = new Problem(503, "unavailable", "");
    const one = async () => {
      if (answer) throw answer;
      return sale();
    };
    const made = vi.fn();
    show("en", <Settings api={{ put, sale: one }} taken={new Set()} onSaved={made} />);
    await type("Id", "new");
    const create = async () => {
      act(() => root.querySelector("form")?.requestSubmit());
      await act(async () => void (await vi.advanceTimersByTimeAsync(100)));
    };
    await create();
    expect(text()).toContain("Whether there is a sale with this id cannot be known now");
    answer = undefined;
    await create();
    expect(text()).toContain("There is a sale with this id already.");
    expect(button("Make the sale")?.disabled).toBe(true);
    expect(written).toEqual([]);
    await type("Id", "newer");
    answer = new Problem(404, "no_such_sale", "");
    await create();
    expect(written).toEqual(["newer"]);
    expect(made).toHaveBeenCalledOnce();
    vi.useRealTimers();
  });

  it("ask which ids are taken until that is known", async () => {
    vi.useFakeTimers();
    const sales = vi.fn(async () => ({ sales: [sale({ id: "mine" })] }));
    sales.mockRejectedValueOnce(new Problem(503, "unavailable", ""));
    show("en", <NewSalePage api={{ ...api, sales } as never} />);
    await type("Id", "mine");
    expect(text()).toContain("The server is checking");
    expect(root.querySelector("[role=alert]")?.textContent).toContain("503");
    await act(async () => void (await vi.advanceTimersByTimeAsync(3_000)));
    await act(async () => void (await vi.advanceTimersByTimeAsync(10_000)));
    expect(text()).toContain("There is a sale with this id already.");
    expect(root.querySelector("[role=alert]")).toBeNull();
    expect(sales).toHaveBeenCalledTimes(2);
    vi.useRealTimers();
  });

  it("keep a new sale that is being typed, until it is given up", async () => {
    vi.useFakeTimers();
    const page = <NewSalePage api={{ ...api, sales: async () => ({ sales: [] }) } as never} />;
    show("en", page);
    await type("Id", "typed");
    show("en", <p />);
    show("en", page);
    expect(field("Id")?.value).toBe("typed");
    root.addEventListener("click", (event) => event.preventDefault(), { once: true });
    press([...root.querySelectorAll("a")].find((a) => a.textContent === "Cancel"));
    show("en", <p />);
    show("en", page);
    expect(field("Id")?.value).toBe("");
    vi.useRealTimers();
  });

  it("add and remove items", () => {
    show("en", <Settings api={api} taken={new Set()} onSaved={() => {}} />);
    press(button("Add an item"));
    expect(text()).toContain("2 of at most 50 items");
    press(root.querySelector(".remove"));
    expect(text()).toContain("1 of at most 50 items");
    expect(root.querySelector(".remove")).toBeNull();
  });
});

describe("what the server says of itself", () => {
  it("is read again when figures come from another node, or anew", async () => {
    vi.useFakeTimers();
    const streams: ReadableStreamDefaultController<Uint8Array>[] = [];
    let asked = 0;
    const session = new Session(async (url) => {
      if (String(url).endsWith("/about")) asked++;
      if (!String(url).endsWith("/live")) return new Response(JSON.stringify({ ...about, entries: [], next: 0 }));
      return new Response(new ReadableStream({ start: (stream) => void streams.push(stream) }));
    });
    const tell = async (at: number, node: string) => {
      const data = `data: ${JSON.stringify(frame({ at, node }))}\n\n`;
      streams.at(-1)?.enqueue(new TextEncoder().encode(data));
      await act(async () => void (await vi.advanceTimersByTimeAsync(300)));
    };
    show("en", <SalePage session={session} id="phone-x" part="orders" />);
    await act(async () => void (await vi.advanceTimersByTimeAsync(300)));
    await tell(T, "a");
    await tell(T + 1000, "a");
    expect(asked).toBe(1);
    await tell(T + 2000, "b");
    expect(asked).toBe(2);
    streams.at(-1)?.close();
    await act(async () => void (await vi.advanceTimersByTimeAsync(3_000)));
    await tell(T + 5000, "b");
    expect(asked).toBe(3);
    vi.useRealTimers();
  });
});

describe("the list of sales", () => {
  it("says that it is old while the server does not answer, and asks once at a time", async () => {
    vi.useFakeTimers();
    let hang = false;
    const sales = vi.fn(() => (hang ? new Promise<{ sales: Sale[] }>(() => {}) : Promise.resolve({ sales: [sale()] })));
    show("en", <SalesPage session={{ api: { sales } } as never} />);
    const pass = (ms: number) => act(async () => void (await vi.advanceTimersByTimeAsync(ms)));
    await pass(100);
    expect(text()).toContain("Phone X");
    hang = true;
    await pass(3_000);
    await pass(20_000);
    expect(text()).toMatch(/The list is 2\d sec old/);
    expect(sales).toHaveBeenCalledTimes(2);
    vi.useRealTimers();
  });
});

describe("orders", () => {
  const row = (id: string): OrderRow => ({ id, item: "black", user: "u1", qty: 1, status: "confirmed", created_at: T });

  it("are shown in pages, searched, and filtered", async () => {
    const orders = vi.fn(async (_: string, query: { before: string; q: string; status: string }) =>
      query.before ? { orders: [row("o1")], next: "" } : { orders: [row("o3"), row("o2")], next: "o2" },
    );
    show("en", <OrdersView api={{ orders, csv: vi.fn() } as never} id="phone-x" sale={sale()} />);
    await settle();
    expect(text()).toContain("o3");
    expect(text()).toContain("Black");
    expect(button("Newer")?.disabled).toBe(true);
    press(button("Older"));
    await settle();
    expect(text()).toContain("o1");
    expect(text()).toContain("Page 2");
    expect(button("Older")?.disabled).toBe(true);
    const status = root.querySelector("select") as HTMLSelectElement;
    expect(text()).toContain("Orders that are not written yet are not listed.");
    expect([...status.options].map(({ value }) => value)).not.toContain("reserved");
    status.value = "paid";
    act(() => void status.dispatchEvent(new Event("change", { bubbles: true })));
    await settle();
    expect(orders).toHaveBeenLastCalledWith(
      "phone-x",
      { q: "", status: "paid", before: "", limit: 50 },
      expect.anything(),
    );
  });

  it("come as a file that is fetched with the token", async () => {
    const csv = vi.fn(async () => new Blob(["id\r\n"]));
    const url = vi.spyOn(URL, "createObjectURL").mockReturnValue("blob:x");
    const click = vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => {});
    show(
      "en",
      <OrdersView api={{ orders: async () => ({ orders: [], next: "" }), csv } as never} id="phone-x" sale={sale()} />,
    );
    press(button("Download all as CSV"));
    await settle();
    expect(csv).toHaveBeenCalledWith("phone-x");
    expect(click).toHaveBeenCalledOnce();
    expect(url).toHaveBeenCalledOnce();
    vi.restoreAllMocks();
  });
});

describe("charts", () => {
  it("show nothing where one points at a gap, and the newest figure where one points at nothing", () => {
    const history = new History();
    history.add(frame());
    history.add(frame({ at: T + 20_000, line: { ...frame().line, waiting: 7 } as LiveFrame["line"] }));
    const series = [{ column: "waiting", name: "Waiting", tone: 1 }];
    show("en", <Chart title="X" history={history} at={T} series={series} write={String} />);
    const shown = () => root.querySelector(".legend b")?.textContent;
    const point = (idx: number | null) => act(() => drawn.at(-1)?.hooks.setCursor[0]?.({ cursor: { idx } }));
    expect(shown()).toBe("7");
    point(0);
    expect(shown()).toBe("18240");
    point(1);
    expect(shown()).toBe("–");
    point(null);
    expect(shown()).toBe("7");
  });
});

describe("figures", () => {
  it("say all only of all", () => {
    const { f } = speak("en");
    expect([0, 0.0123, 0.588, 0.997, 1].map((part) => f.percent(part))).toEqual(["0%", "1.2%", "59%", "99%", "100%"]);
  });
});

describe("languages", () => {
  it("are chosen by what the browser asks for, English last", () => {
    expect(choose(["fr", "zh-Hans-CN", "en"], Object.keys(languages))).toBe("zh");
    expect(choose(["fr"], Object.keys(languages))).toBe("en");
  });

  it("have the same entries everywhere", () => {
    const shape = (value: unknown): unknown =>
      value && typeof value === "object"
        ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, shape(part)]))
        : typeof value;
    for (const messages of Object.values(languages)) expect(shape(messages)).toEqual(shape(languages.en));
  });
});
