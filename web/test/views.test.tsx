import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Attention } from "../src/attention.ts";
import { choose } from "../src/choose.ts";
import { Store } from "../src/identity.ts";
import { language, nameOf, speak, tags } from "../src/lang/index.ts";
import type { Frame } from "../src/protocol.ts";
import type { Gate } from "../src/session.ts";
import { initial, reduce, type State } from "../src/state.ts";
import { now } from "../src/ticker.ts";
import { NotFound, Frame as PageFrame } from "../src/views/frame.tsx";
import { Sales } from "../src/views/list.tsx";
import { SaleView } from "../src/views/sale.tsx";
import { order, queued, sale, T, turn, welcome } from "./stage.ts";

const doing = {
  grab: vi.fn(),
  leave: vi.fn(),
  join: vi.fn(),
  restart: vi.fn(),
  pay: vi.fn(),
  cancel: vi.fn(),
  link: () => "http://shop/s/phone-x#token=t",
  checkDraw: vi.fn(),
};
let attention: Attention;
const spoken = Object.fromEntries(await Promise.all(tags.map(async (tag) => [tag, await speak(tag)])));
let root: HTMLElement;

beforeEach(() => {
  vi.clearAllMocks();
  localStorage.clear();
  attention = new Attention(new Store());
  for (const doing of ["on", "off", "call"] as const) vi.spyOn(attention, doing).mockImplementation(async () => {});
  root = document.createElement("div");
  document.body.append(root);
  now.value = T;
});
afterEach(() => {
  render(null, root);
  root.remove();
});

const arrived = (...frames: Frame[]): State => frames.reduce(reduce, initial);
const told = (frame: Frame) => arrived(welcome(), frame);

function show(state: State, tag = "en", gate: Gate = "open"): string {
  language.value = spoken[tag];
  act(() => render(<SaleView id="phone-x" state={state} gate={gate} actions={doing} attention={attention} />, root));
  return root.textContent ?? "";
}

const button = (text: string) => [...root.querySelectorAll("button")].find((b) => b.textContent?.includes(text));
const press = (element: Element | null | undefined) => act(() => (element as HTMLElement).click());

/** Every view: the state it is of, and what has to be read there in English and in Chinese. */
const views: Record<string, [State, string[], string[], Gate?]> = {
  connecting: [initial, ["Connecting…"], ["正在连接…"]],
  unreached: [{ ...initial, link: "waiting" }, ["cannot be reached yet"], ["暂时无法连接"]],
  crowded: [{ ...initial, notice: { kind: "limited" } }, ["nothing to press"], ["无需任何操作"]],
  "sign in": [initial, ["Please come from the shop"], ["请从商城进入"], "signIn"],
  "guests wait": [initial, ["Connecting…"], ["正在连接…"], "crowded"],
  scheduled: [
    arrived(welcome({ sale: sale({ state: "scheduled", lobby_at: T + 61_000, opens_at: T + 99_000 }) }), {
      type: "none",
      at: T,
    }),
    ["Not open yet", "1:01"],
    ["尚未开始", "1:01"],
  ],
  lottery: [
    told({ type: "lobby", at: T, entries: 1234, opens_at: T + 3_725_000, order: "lottery" }),
    ["1:02:05", "1,234 people waiting", "by a draw"],
    ["1:02:05", "1,234 人等候中", "抽签"],
  ],
  "lottery that binds itself": [
    arrived(welcome({ sale: sale({ line: { order: "lottery", commitment: "9f86d081" } }) }), {
      type: "lobby",
      at: T,
      entries: 2,
      opens_at: T - 1,
      order: "lottery",
      drawing: true,
    }),
    ["Drawing…", "9f86d081", "nobody can change"],
    ["正在抽签", "9f86d081", "无法更改"],
  ],
  "line that was drawn": [
    arrived(welcome({ sale: sale({ line: { order: "lottery" } }) }), queued({ reason: "left" })),
    ["Your number was drawn", "Check the draw", "have left the line"],
    ["由抽签产生", "核验抽签", "离开了队伍"],
  ],
  "lobby in order of arrival": [
    told({ type: "lobby", at: T, entries: 1, opens_at: T + 5_000, order: "fifo" }),
    ["0:05", "1 person waiting", "Your number 50"],
    ["0:05", "您的号码 50"],
  ],
  "lobby without a line": [
    told({ type: "lobby", at: T, entries: 0, opens_at: T + 5_000, order: "off" }),
    ["There is no line"],
    ["无需排队"],
  ],
  opening: [told({ type: "lobby", at: T, entries: 1, opens_at: T, order: "fifo" }), ["Opening…"], ["正在开售…"]],
  queued: [
    told(queued({ ahead: 1872, number: 5210, total: 9000, eta_ms: 130_000, eta_max_ms: 250_000, recalled: 2 })),
    ["1,872", "about 2–5 minutes", "5,210", "9,000", "2 people returning", "Good", "within 10 minutes"],
    ["1,872", "约 2-5分钟", "5,210", "9,000", "2 位", "较大", "10分钟内"],
  ],
  next: [
    told(queued({ ahead: 0, eta_ms: 1 })),
    ["You are next", "less than a minute"],
    ["下一个就是您", "不到 1 分钟"],
  ],
  possible: [told(queued({ chance: "possible" })), ["Chance: Possible", "Not known yet"], ["有可能", "暂时未知"]],
  unlikely: [told(queued({ chance: "unlikely" })), ["Chance: Small"], ["较小"]],
  "line while all is reserved": [told(queued({ stock: "held" })), ["go to the people in line"], ["依次给到排队的人"]],
  "line while paused": [
    reduce(told(queued()), { type: "paused", at: T, why: "operator" }),
    ["The sale is paused", "ahead of you"],
    ["活动已暂停", "人在您前面"],
  ],
  "line while recovering": [
    reduce(told(queued()), { type: "paused", at: T, why: "recovering" }),
    ["No clock runs"],
    ["期间不计时"],
  ],
  reconnecting: [{ ...told(queued()), link: "waiting" }, ["Your place is kept", "ahead of you"], ["您的位置已保留"]],
  limited: [
    reduce(told(queued()), { type: "limited", at: T, retry_after_ms: 9 }),
    ["It is crowded. You keep your place"],
    ["人很多，您的位置已保留"],
  ],
  turn: [
    told(turn()),
    ["It is your turn", "1:00", "Black", "White", "¥2,999", "Buy now"],
    ["轮到您了", "1:00", "黑色", "立即抢购"],
  ],
  "turn without a line": [
    arrived(welcome({ sale: sale({ line: { order: "off" } }) }), turn()),
    ["The sale is open", "Open until"],
    ["正在发售"],
  ],
  grabbing: [
    { ...told(turn()), pending: { id: "r", item: "black", qty: 1 } },
    ["Securing your order"],
    ["正在为您抢购"],
  ],
  "item gone": [
    { ...told(turn()), notice: { kind: "itemGone", item: "black", stock: "gone" } },
    ["Black is sold out"],
    ["“黑色”已售罄"],
  ],
  "item reserved": [
    { ...told(turn()), notice: { kind: "itemGone", item: "black", stock: "held" } },
    ["Black is all reserved"],
    ["“黑色”目前已全部预留"],
  ],
  fewer: [{ ...told(turn()), notice: { kind: "fewer", left: 1 } }, ["Only 1 unit left"], ["只剩 1 件"]],
  busy: [{ ...told(turn()), notice: { kind: "busy" } }, ["you cannot buy twice"], ["不会重复购买"]],
  "no turn": [{ ...told(turn()), notice: { kind: "noTurn" } }, ["Your turn was over"], ["您的机会已结束"]],
  "not open": [{ ...told(turn()), notice: { kind: "notOpen" } }, ["is not open at this moment"], ["未开放"]],
  failed: [{ ...told(turn()), notice: { kind: "error", code: "invalid", msg: "" } }, ["did not work"], ["未能成功"]],
  success: [
    told({ type: "success", at: T, order: order("reserved", { pay_by: T + 900_000 }) }),
    ["It is yours", "15:00", "order-1", "Black"],
    ["抢到了", "15:00", "order-1", "黑色"],
  ],
  confirmed: [
    told({ type: "order", at: T, order: order("confirmed", { qty: 2 }) }),
    ["Order confirmed", "¥5,998"],
    ["订单已确认", "¥5,998"],
  ],
  "time to pay is over": [
    told({ type: "order", at: T, order: order("confirmed", { pay_by: T }) }),
    ["The time to pay is over"],
    ["付款时间已过"],
  ],
  "confirmed, to be paid here": [
    arrived(welcome({ payment: "demo" }), { type: "order", at: T, order: order("confirmed", { pay_by: T + 60_000 }) }),
    ["Pay now", "Cancel the order", "Please pay before then"],
    ["立即付款", "取消订单", "请在此之前付款"],
  ],
  "confirmed, to be paid in the shop": [
    arrived(welcome({ payment: "provider" }), {
      type: "order",
      at: T,
      order: order("confirmed", { pay_by: T + 60_000 }),
    }),
    ["Pay in the shop", "Cancel the order"],
    ["到商城付款", "取消订单"],
  ],
  paying: [
    {
      ...arrived(welcome({ payment: "demo" }), {
        type: "order",
        at: T,
        order: order("confirmed", { pay_by: T + 60_000 }),
      }),
      changing: "pay",
    },
    ["Paying…"],
    ["正在付款"],
  ],
  "an order from before": [
    { ...told(queued()), notice: { kind: "orderEnded", status: "expired" } },
    ["Your earlier order: order expired", "ahead of you"],
    ["您之前的订单：订单已过期"],
  ],
  unanswered: [
    { ...told({ type: "order", at: T, order: order("confirmed") }), notice: { kind: "unanswered" } },
    ["nothing is done twice"],
    ["不会重复"],
  ],
  paid: [told({ type: "order", at: T, order: order("paid") }), ["Order paid"], ["订单已付款"]],
  already: [told({ type: "already", at: T, order: order() }), ["You have an order already"], ["您已有订单"]],
  cancelled: [told({ type: "order", at: T, order: order("cancelled") }), ["Order cancelled"], ["订单已取消"]],
  expired: [told({ type: "order", at: T, order: order("expired") }), ["Order expired"], ["订单已过期"]],
  rejected: [told({ type: "order", at: T, order: order("rejected") }), ["Order not accepted"], ["订单未被接受"]],
  "all reserved": [told({ type: "sold_out", at: T, stock: "held" }), ["All reserved"], ["已全部预留"]],
  "sold out": [told({ type: "sold_out", at: T, stock: "gone" }), ["Sold out"], ["已售罄"]],
  missed: [told({ type: "missed", at: T, why: "expired" }), ["Your turn has ended"], ["您的机会已结束"]],
  absent: [told({ type: "missed", at: T, why: "absent" }), ["Your place has ended"], ["您的位置已失效"]],
  paused: [told({ type: "paused", at: T, why: "operator" }), ["The sale is paused"], ["活动已暂停"]],
  closed: [told({ type: "closed", at: T }), ["The sale is closed"], ["活动已结束"]],
  none: [told({ type: "none", at: T }), ["You have no place in line"], ["您不在队伍中"]],
  left: [{ ...initial, view: { name: "left" } }, ["You have left the line"], ["您已离开队伍"]],
  ...Object.fromEntries(
    [
      [4400, "", "newest version", "最新版本"],
      [4401, "", "not valid any more", "已失效"],
      [4403, "denied", "not open to you", "未对您开放"],
      [4403, "code_needed", "needs an access code", "需要邀请码"],
      [4403, "code_used", "has been used", "已被使用"],
      [4403, "challenge_needed", "checks who joins", "通过验证"],
      [4404, "", "no such sale", "没有这个活动"],
      [4409, "", "too many tabs", "太多标签页"],
    ].map(([code, reason, en, zh]) => [
      `refused ${code} ${reason}`,
      [{ ...initial, view: { name: "refused", code, reason } } as State, [en], [zh]],
    ]),
  ),
};

describe.each(["en", "zh"])("in %s", (tag) => {
  it.each(Object.entries(views))("%s says what it has to", (_, [state, en, zh, gate]) => {
    const text = show(state, tag, gate);
    for (const words of tag === "en" ? en : zh) expect(text).toContain(words);
    expect(text).not.toMatch(/undefined|NaN|\[object/);
    expect(root.querySelectorAll("h1")).toHaveLength(1);
    expect(document.title).toContain("·");
    if (tag === "zh") {
      const words = text.replace(/order-1|phone-x|X|Phone/g, "");
      expect(words, "left in English").not.toMatch(/[A-Za-z]{3,}/);
    }
  });

  it("the list of sales shows each with its state, those that are open first", () => {
    language.value = spoken[tag];
    const sales = [
      sale({ id: "c", state: "closed" }),
      sale({ id: "s", state: "scheduled", opens_at: T + 65_000 }),
      sale({ id: "o", stock: "held" }),
    ];
    act(() => render(<Sales sales={sales} failed={false} />, root));
    expect([...root.querySelectorAll("a")].map((a) => a.getAttribute("href"))).toEqual(["/s/o", "/s/s", "/s/c"]);
    expect(root.textContent).toContain("1:05");
    expect(root.textContent).toContain(tag === "en" ? "All reserved" : "已全部预留");
    act(() => render(<Sales sales={[]} failed={false} />, root));
    expect(root.textContent).toContain(tag === "en" ? "no sale at the moment" : "目前没有活动");
    act(() => render(<Sales sales={undefined} failed={true} />, root));
    expect(root.textContent).toContain(tag === "en" ? "cannot be read" : "暂时无法读取");
  });

  it("an address that leads nowhere says so", () => {
    language.value = spoken[tag];
    act(() => render(<NotFound />, root));
    expect(root.textContent).toContain(tag === "en" ? "There is nothing here" : "这里什么都没有");
  });
});

describe("what can be done", () => {
  it("buys the chosen item in the chosen quantity, within limit and stock", () => {
    const items = [
      { id: "black", stock: 0 },
      { id: "white", stock: 2 },
    ];
    show(told(turn({ limit: 5, items })));
    expect(root.querySelector<HTMLInputElement>("[value=black]")?.disabled).toBe(true);
    const more = root.querySelector("[aria-label='One more']");
    for (let i = 0; i < 4; i++) press(more);
    expect(root.querySelector("output")?.textContent).toBe("2");
    act(() => root.querySelector("form")?.requestSubmit());
    expect(doing.grab).toHaveBeenCalledExactlyOnceWith("white", 2);
  });

  it("hides the choice where there is none, and the quantity where it is one", () => {
    const one = sale({ items: [{ id: "main", stock: 1, total: 1 }] });
    show(arrived(welcome({ sale: one }), turn({ items: [{ id: "main", stock: 1 }] })));
    expect(root.querySelector("input")).toBeNull();
    expect(root.querySelector("output")).toBeNull();
    act(() => root.querySelector("form")?.requestSubmit());
    expect(doing.grab).toHaveBeenCalledExactlyOnceWith("main", 1);
  });

  it("leaves only after asking", () => {
    show(told(queued()));
    press(button("Leave the line"));
    expect(doing.leave).not.toHaveBeenCalled();
    press([...root.querySelectorAll("dialog button")].at(-1));
    expect(doing.leave).toHaveBeenCalledOnce();
  });

  it("offers no leaving where there is no line, and none while an order is under way", () => {
    show(arrived(welcome({ sale: sale({ line: { order: "off" } }) }), turn()));
    expect(button("Leave the line")).toBeUndefined();
    show({ ...told(turn()), pending: { id: "r", item: "black", qty: 1 } });
    expect(button("Leave the line")).toBeUndefined();
  });

  it("pays at once, and cancels only after asking", () => {
    const confirmed = order("confirmed", { pay_by: T + 60_000 });
    show(arrived(welcome({ payment: "demo" }), { type: "order", at: T, order: confirmed }));
    press(button("Pay now"));
    expect(doing.pay).toHaveBeenCalledOnce();
    press(button("Cancel the order"));
    expect(doing.cancel).not.toHaveBeenCalled();
    press([...root.querySelectorAll("dialog button")].find((b) => b.textContent === "Cancel the order"));
    expect(doing.cancel).toHaveBeenCalledOnce();
  });

  it("offers no payment when the provider takes it, when it is too late, or while it is under way", () => {
    const paying = (pay_by: number, payment: "demo" | "provider") =>
      arrived(welcome({ payment }), { type: "order", at: T, order: order("confirmed", { pay_by }) });
    show(paying(T + 60_000, "provider"));
    expect(button("Pay now")).toBeUndefined();
    show(paying(T - 1, "demo"));
    expect(button("Pay now")).toBeUndefined();
    show({ ...paying(T + 60_000, "demo"), changing: "pay" });
    expect(button("Paying")?.disabled).toBe(true);
    expect(button("Cancel the order")).toBeUndefined();
  });

  it("calls who has waited when the turn comes, and marks the icon", () => {
    const icon = document.createElement("link");
    icon.rel = "icon";
    document.head.append(icon);
    show(told(queued()));
    expect(attention.call).not.toHaveBeenCalled();
    show(told(turn()));
    expect(attention.call).toHaveBeenCalledExactlyOnceWith("It is your turn", "Phone X", "en");
    expect(icon.href).toContain("badge");
    show(told(turn({ until: T + 90_000 })));
    expect(attention.call).toHaveBeenCalledOnce();
    show(told({ type: "missed", at: T, why: "expired" }));
    expect(icon.href).not.toContain("badge");
    icon.remove();
  });

  it("does not call for a turn that a reload finds, nor where there is no line", () => {
    show(initial);
    show(told(turn()));
    const off = welcome({ sale: sale({ line: { order: "off" } }) });
    show(arrived(off, { type: "lobby", at: T, entries: 0, opens_at: T, order: "off" }));
    show(arrived(off, turn()));
    expect(attention.call).not.toHaveBeenCalled();
  });

  it("lets who waits ask to be called", () => {
    show(told(queued()));
    const box = root.querySelector<HTMLInputElement>(".call input") as HTMLInputElement;
    press(box);
    expect(attention.on).toHaveBeenCalledOnce();
    act(() => {
      attention.means.value = "sound";
    });
    expect(root.textContent).toContain("You will hear a sound. Notifications are not allowed here.");
    press(box);
    expect(attention.off).toHaveBeenCalledOnce();
  });

  it("joins again, with a code where one is asked for", () => {
    show(told({ type: "missed", at: T, why: "expired" }));
    press(button("Join the line again"));
    expect(doing.join).toHaveBeenCalledOnce();
    show({ ...initial, view: { name: "refused", code: 4403, reason: "code_needed" } });
    (root.querySelector("input") as HTMLInputElement).value = "early-bird";
    act(() => root.querySelector("form")?.requestSubmit());
    expect(doing.join).toHaveBeenLastCalledWith("early-bird");
  });
});

describe("what moves", () => {
  it("clocks run by the server's time, and stand while the sale is paused", () => {
    show(told(turn()));
    act(() => {
      now.value = T + 18_000;
    });
    expect(root.querySelector("[role=timer]")?.textContent).toBe("0:42");
    show(reduce(told(turn()), { type: "paused", at: T }));
    expect(root.querySelector<HTMLButtonElement>(".buy")?.disabled, "nothing is given out meanwhile").toBe(true);
    act(() => {
      now.value = T + 30_000;
    });
    expect(root.querySelector("[role=timer]")?.textContent).toBe("0:42");
  });

  it("the title carries the position and the clock", () => {
    show(told(queued({ ahead: 1872 })));
    expect(document.title).toBe("1,872 ahead of you · Phone X");
    show(told(turn()));
    expect(document.title).toBe("1:00 · It is your turn · Phone X");
  });

  it("a position is said at once, and then at most every ten seconds", () => {
    vi.useFakeTimers();
    const said = () => root.querySelector("[aria-live=polite]")?.textContent ?? "";
    const advance = (ms: number) => act(() => void vi.advanceTimersByTime(ms));
    show(told(queued({ ahead: 30 })));
    advance(1);
    expect(said()).toContain("30 people ahead");
    for (let ahead = 29; ahead > 20; ahead--) {
      show(told(queued({ ahead })));
      advance(1_000);
    }
    expect(said()).toContain("30 people ahead");
    advance(1_100);
    expect(said()).toContain("21 people ahead");
    show(told(turn()));
    advance(1);
    expect(said(), "a turn cannot wait").toContain("It is your turn");
    vi.useRealTimers();
  });
});

describe("languages", () => {
  it("are chosen by what the browser asks for, English last", () => {
    expect(choose(["fr", "zh-Hans-CN", "en"], tags)).toBe("zh");
    expect(choose(["en-GB", "zh"], tags)).toBe("en");
    expect(choose(["fr"], tags)).toBe("en");
    expect(choose([], tags)).toBe("en");
  });

  it("can be switched", () => {
    language.value = spoken.en;
    const set = vi.fn();
    act(() => render(<PageFrame setLanguage={set}>x</PageFrame>, root));
    const select = root.querySelector("select") as HTMLSelectElement;
    expect([...select.options].map((o) => o.textContent)).toEqual(tags.map(nameOf));
    select.value = "zh";
    act(() => void select.dispatchEvent(new Event("change", { bubbles: true })));
    expect(set).toHaveBeenCalledWith("zh");
  });
});
