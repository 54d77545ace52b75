import type { LiveFrame, LogEntry, NodeFigures, Sale, SaleFile } from "../../src/console/types.ts";

/** The server's time in these tests: years away from that of the machine they run on. */
export const T = Date.UTC(2031, 4, 17, 12);

export function sale(change: Partial<Sale> = {}): Sale {
  return {
    id: "phone-x",
    title: { en: "Phone X", zh: "手机 X" },
    items: [
      { id: "black", title: { en: "Black", zh: "黑色" }, stock: 600, price: 299900, left: 412 },
      { id: "white", title: { en: "White", zh: "白色" }, stock: 400, price: 319900, left: 0 },
    ],
    currency: "CNY",
    opens_at: "2031-05-17T11:50:00.123Z",
    closes_at: "2031-05-17T13:00:00Z",
    lobby: "30m0s",
    limit: 1,
    line: { order: "lottery", rate: 500, active: 2000, ratio: 5, turn: "1m0s", grace: "10m0s" },
    hold: "15m0s",
    state: "open",
    stock: "available",
    waiting: 18240,
    turns: 1985,
    served: 5210,
    issued: 23450,
    epoch: 1,
    rate: 48.4,
    ...change,
  };
}

/** Only what a sale file has. */
export function file(change: Partial<SaleFile> = {}): SaleFile {
  const {
    state: _s,
    stock: _k,
    waiting: _w,
    turns: _t,
    served: _v,
    issued: _i,
    epoch: _e,
    rate: _r,
    ...settings
  } = sale();
  return { ...settings, items: settings.items.map(({ left: _, ...item }) => item), ...change };
}

export function node(change: Partial<NodeFigures> = {}): NodeFigures {
  return {
    node: "a",
    started: T - 3_600_000,
    at: T,
    connections: 9100,
    shoppers: 9000,
    grabs: { success: 300, sold_out: 12 },
    limited: { user: 7 },
    ...change,
  };
}

export function frame(change: Partial<LiveFrame> = {}): LiveFrame {
  return {
    at: T,
    node: "a",
    sale: sale(),
    line: {
      waiting: 18240,
      recalled: 3,
      turns: 1985,
      served: 5210,
      issued: 23450,
      granted: 5213,
      left: 40,
      held: 77,
      rate: 48.4,
    },
    orders: { taken: 588, written: 580, outbox: 5, broker: 3, dead: 0 },
    audit: { at: T - 4000, balanced: true, imbalance: { black: 0, white: 0 }, problems: [] },
    nodes: [node(), node({ node: "b", connections: 900, shoppers: 800 })],
    troubles: [],
    ...change,
  };
}

export function entry(change: Partial<LogEntry> = {}): LogEntry {
  return {
    id: 1,
    at: T - 60_000,
    who: "admin",
    action: "pause",
    sale: "phone-x",
    before: file(),
    after: file(),
    ...change,
  };
}
