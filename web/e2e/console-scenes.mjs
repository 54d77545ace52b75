// What the stub of the operator's API plays: sales, and for one of them ten minutes of figures that go like those of a
// real rush: a lobby that fills, a peak, stock that runs out item by item, a node that restarts.

const minute = 60_000;
const hour = 60 * minute;
const iso = (at) => new Date(at).toISOString();

export function saleOf(id, now, change = {}) {
  return {
    id,
    title: { en: "Phone X, 1,000 units", zh: "Phone X 限量 1000 台" },
    items: [
      { id: "black", title: { en: "Midnight black", zh: "午夜黑" }, stock: 600, price: 299900, left: 187 },
      { id: "white", title: { en: "Pearl white", zh: "珍珠白" }, stock: 300, price: 319900, left: 0 },
      { id: "green", title: { en: "Alpine green", zh: "苍岭绿" }, stock: 100, price: 329900, left: 64 },
    ],
    currency: "CNY",
    opens_at: iso(now - 8 * minute),
    closes_at: iso(now + 52 * minute + 17_000),
    lobby: "30m0s",
    limit: 1,
    line: { order: "lottery", rate: 50, active: 300, ratio: 5, turn: "1m0s", grace: "10m0s" },
    hold: "15m0s",
    state: "open",
    stock: "available",
    waiting: 18_240,
    turns: 212,
    served: 5210,
    issued: 23_450,
    epoch: 1,
    rate: 48.4,
    ...change,
  };
}

const none = { waiting: 0, turns: 0, served: 0, issued: 0, rate: 0 };

export function salesOf(now) {
  const tickets = [{ id: "main", stock: 4000, left: 4000 }];
  return [
    saleOf("phone-x", now),
    saleOf("concert", now, {
      ...none,
      title: { en: "Concert, row by row", zh: "演唱会门票" },
      state: "lobby",
      waiting: 9210,
      opens_at: iso(now + 4 * minute),
      items: tickets,
    }),
    saleOf("trail-shoes", now, {
      ...none,
      title: "Trail shoes 红",
      state: "scheduled",
      opens_at: iso(now + 26 * hour),
      closes_at: iso(now + 28 * hour),
      items: [{ id: "main", stock: 250, left: 250 }],
    }),
    saleOf("watch", now, {
      title: { en: "Watch, second edition", zh: "手表第二版" },
      state: "paused",
      stock: "held",
      waiting: 311,
      rate: 0,
      items: [{ id: "main", stock: 80, left: 0 }],
    }),
    saleOf("mug", now, {
      ...none,
      title: { en: "The mug", zh: "马克杯" },
      state: "closed",
      stock: "gone",
      opens_at: iso(now - 50 * hour),
      closes_at: iso(now - 49 * hour),
      items: [{ id: "main", stock: 500, left: 0 }],
    }),
  ];
}

/** How far the rush has come t seconds after the page's first frame, which is eight minutes after the opening. */
function rush(t) {
  const wave = (period, size) => Math.sin(t / period) * size + Math.sin(t / (period * 0.37)) * size * 0.5;
  const opened = t + 480; // seconds since the opening
  const granted = Math.max(0, Math.round(opened * 10.9 + wave(21, 14)));
  const share = (of) => Math.min(of, Math.max(0, Math.round(of * (1 - Math.exp(-Math.max(0, opened) / (of * 0.9))))));
  return {
    granted,
    waiting: Math.max(0, Math.round(opened < 0 ? 23_450 + opened * 40 : 23_450 - granted + wave(33, 60))),
    taken: { black: share(600), white: Math.min(300, Math.max(0, Math.round(opened * 0.9))), green: share(100) },
    under: opened < 0 ? 0 : Math.max(0, Math.round(14 + wave(55, 6) + wave(7, 1.5))),
    connections: Math.round(19_400 + wave(40, 130)),
  };
}

/** The frame of t seconds after the first; t below zero is the past that the charts begin with. */
export function frameOf(id, start, t, scene = {}) {
  const at = start + t * 1000;
  const { granted, waiting, taken, under, connections } = rush(t);
  const items = saleOf(id, start).items.map((item) => ({ ...item, left: item.stock - taken[item.id] }));
  const sum = taken.black + taken.white + taken.green;
  const restarted = t > -170;
  const node = (name, part, change = {}) => ({
    node: name,
    started: start - 9 * hour,
    at: at - 300,
    connections: Math.round(connections * part),
    shoppers: Math.round(connections * part * 0.94),
    grabs: {
      success: Math.round(sum * part),
      already: Math.round(granted * part * 0.02),
      sold_out: Math.max(0, Math.round((t + 150) * part * 3.4)),
      no_turn: Math.round(granted * part * 0.06),
    },
    limited: { user: Math.round(granted * part * 0.31), node: 0 },
    ...change,
  });
  const fresh = { started: start - 170_000, grabs: { success: Math.max(0, Math.round((t + 170) * 0.2)) }, limited: {} };
  const frame = {
    at,
    node: "front-1",
    sale: saleOf(id, start, { items, waiting, ...scene.sale?.(start) }),
    line: {
      waiting,
      recalled: 3,
      turns: 212,
      served: Math.min(23_450, granted),
      issued: 23_450,
      granted,
      left: 1204,
      held: 143,
      rate: 10.9,
    },
    orders: {
      taken: sum,
      written: sum - under,
      outbox: Math.round(under * 0.4),
      broker: Math.round(under * 0.5),
      dead: 0,
    },
    audit: { at: at - 4200, balanced: true, imbalance: { black: 0, white: 0, green: 0 }, problems: [] },
    nodes: [node("front-1", 0.42), node("front-2", 0.4), node("front-3", 0.18, restarted ? fresh : {})],
    troubles: [],
  };
  return { ...frame, ...scene.frame?.(frame) };
}

/** What differs from the plain rush; quiet = no frame follows the first ones. */
export const scenes = {
  "phone-x": {},
  stale: { quiet: true },
  wrong: {
    frame: ({ at, orders }) => ({
      orders: { ...orders, dead: 2, broker: 31, outbox: 418 },
      audit: {
        at: at - 7000,
        balanced: false,
        imbalance: { black: 2, white: 0, green: 0 },
        problems: [
          "black: 187 left and 411 with winners do not make the total of 600 in Redis",
          'order 019b0c5e-7d1a-7c3f-9a52-4f0e8d2b6c11 of user "u-20417": Redis holds its stock, and no order was written',
        ],
      },
      troubles: ["the database cannot be asked", "the broker does not answer"],
    }),
  },
  lobby: { sale: (now) => ({ state: "lobby", opens_at: iso(now + 4 * minute) }) },
  many: {
    sale: () => ({
      items: Array.from({ length: 50 }, (_, i) => ({ id: `seat-${i + 1}`, stock: 40 + i, left: (i * 7) % 40 })),
    }),
  },
  closed: { sale: (now) => ({ ...none, state: "closed", closes_at: iso(now - 2 * hour) }) },
  archived: {
    sale: (now) => archivedOf(now).find(({ id }) => id === "archived"),
    frame: () => ({ line: null, audit: null }),
  },
  bare: {
    sale: () => ({ items: [{ id: "main", stock: 100 }], waiting: undefined, rate: undefined, state: "recovering" }),
    frame: () => ({
      line: null,
      audit: null,
      nodes: [],
      orders: { taken: null, written: null, outbox: null, broker: null, dead: null },
      troubles: ["Redis cannot be asked"],
    }),
  },
};

/** Sales that were archived: one as it comes, and one whose users were purged. */
export function archivedOf(now) {
  const ended = (id, days, title, purge) => {
    const sale = saleOf(id, now, {
      title,
      state: "closed",
      stock: undefined,
      opens_at: iso(now - (days + 1) * 24 * hour),
      closes_at: iso(now - days * 24 * hour),
    });
    const items = sale.items.map((item) => ({ item: item.id, total: item.stock, sold: item.stock - item.left }));
    const at = now - (days - 1) * 24 * hour;
    const audit = { at, balanced: true, items };
    sale.items = sale.items.map(({ left: _, ...item }) => item);
    return { ...sale, ...absent, archived: { at, done: at + 200, audit, ...purge } };
  };
  return [
    ended("spring", 91, { en: "Spring sale", zh: "春季特卖" }, { purge: true, purged: now - hour }),
    ended("archived", 3, { en: "Phone W", zh: "手机 W" }, { purge: false }),
    ended("tickets", 12, "Tickets", { purge: true }),
  ];
}
const absent = { waiting: undefined, turns: undefined, served: undefined, issued: undefined, rate: undefined };

export function ordersOf(now, query) {
  const statuses = [
    "confirmed",
    "paid",
    "reserved",
    "confirmed",
    "paid",
    "expired",
    "confirmed",
    "cancelled",
    "rejected",
  ];
  const all = Array.from({ length: 120 }, (_, i) => {
    const created = now - i * 3700;
    const status = statuses[i % statuses.length];
    return {
      id: `019b0c5e-${(0x7d1a - i).toString(16)}-7c3f-9a52-4f0e8d2b6c11`,
      item: ["black", "white", "green"][i % 3],
      user: i % 7 === 3 ? "王小明@example.com" : `u-${20_417 + i * 31}`,
      qty: 1,
      status,
      created_at: created,
      pay_by: created + 15 * minute,
      ...(status === "paid" && { paid_at: created + 95_000 }),
    };
  });
  const q = query.get("q") ?? "";
  const status = query.get("status") ?? "";
  const before = query.get("before") ?? "";
  const rest = all
    .filter((order) => order.id.startsWith(q) || order.user.startsWith(q))
    .filter((order) => status === "" || order.status === status)
    .filter((order) => before === "" || order.id < before);
  const orders = rest.slice(0, Number(query.get("limit") ?? 50));
  return { orders, next: orders.length < rest.length ? orders.at(-1).id : "" };
}

export function logOf(now, id) {
  const settings = ({
    state: _s,
    stock: _k,
    waiting: _w,
    turns: _t,
    served: _v,
    issued: _i,
    epoch: _e,
    rate: _r,
    ...rest
  }) => rest;
  const was = settings(saleOf(id, now));
  const faster = { ...was, line: { ...was.line, rate: 20, active: 200 } };
  const fewer = {
    ...faster,
    items: faster.items.map((item) => (item.id === "black" ? { ...item, stock: 500 } : item)),
  };
  const sooner = { ...fewer, closes_at: iso(now + 22 * minute + 17_000) };
  const entry = (n, ago, action, before, after) => ({
    id: n,
    at: now - ago,
    who: "admin",
    action,
    sale: id,
    before,
    after,
  });
  return {
    entries: [
      ...(id === "archived" ? [entry(8, 20_000, "purge", null, null), entry(7, 40_000, "archive", null, null)] : []),
      entry(6, 65_000, "line", faster, was),
      entry(5, 2 * minute, "stock", fewer, faster),
      entry(4, 4 * minute, "resume", fewer, fewer),
      entry(3, 4.4 * minute, "pause", fewer, fewer),
      entry(2, 6 * minute, "extend", sooner, fewer),
      entry(1, 3 * hour, "apply", null, sooner),
    ],
    next: 0,
  };
}

export function aboutOf(now) {
  return {
    node: "front-1",
    version: "0.9.0",
    broker_ui_url: "https://rabbit.example/",
    limits: { user: "20/s", address: "", node: "5000/s" },
    payment: "demo",
    time: now,
  };
}
