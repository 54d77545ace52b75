// The frames of subprotocol sluice.v1, as the server sends them. Times are milliseconds since the epoch by the server's
// clock. Fields that may be absent are optional here, and nothing else is.

export type SaleState = "scheduled" | "lobby" | "open" | "paused" | "closed" | "recovering";
export type StockState = "available" | "held" | "gone";
export type LineOrder = "fifo" | "lottery" | "off";
export type Chance = "likely" | "possible" | "unlikely";
export type OrderStatus = "reserved" | "confirmed" | "paid" | "cancelled" | "expired" | "rejected";

/** One string, or one for each language. */
export type Text = string | Record<string, string>;

export interface Item {
  id: string;
  title?: Text;
  price?: number; // minor units of the sale's currency
  stock: number;
  total: number;
}

export interface Sale {
  id: string;
  title?: Text;
  items: Item[];
  currency?: string;
  opens_at: number;
  closes_at: number;
  lobby_at?: number; // when joining begins; absent = at once
  state: SaleState;
  stock: StockState;
  waiting: number;
  rate: number;
  limit: number;
  line: { order: LineOrder; grace?: number; commitment?: string; beacon?: string }; // grace absent = none
  hold: number;
  access?: { code?: boolean; challenge?: boolean; priority?: boolean }; // what a new place is asked for; absent = nothing
}

export interface Order {
  id: string;
  sale: string;
  item: string;
  qty: number;
  status: OrderStatus;
  created_at?: number;
  pay_by?: number; // absent = needs no payment
  paid_at?: number;
}

interface Base {
  at: number;
}

export interface Welcome extends Base {
  type: "welcome";
  sale: Sale;
  user: string;
  seat?: string;
  number?: number;
  epoch: number;
  node: string;
  payment?: "demo" | "provider"; // demo: an order can be paid here; provider: only where the shop says
}

export interface Lobby extends Base {
  type: "lobby";
  entries: number;
  opens_at: number;
  order: LineOrder;
  drawing?: boolean; // the sale has opened, and its lottery is being drawn
}

export interface Queued extends Base {
  type: "queued";
  number: number;
  ahead: number;
  total: number;
  rate: number;
  recalled: number;
  eta_ms?: number;
  eta_max_ms?: number;
  stock: StockState;
  chance: Chance;
  reason?: string;
}

export interface Turn extends Base {
  type: "turn";
  until: number;
  limit: number;
  items: { id: string; stock: number }[];
  pass?: string; // for other origins; absent without a line
}

export interface OrderNews extends Base {
  type: "success" | "already" | "order";
  id?: string;
  order: Order;
  pass?: string; // of success, and of a live order as the state of the seat
}

export interface SoldOut extends Base {
  type: "sold_out";
  id?: string; // the request that it answers; absent when it is news
  item?: string; // absent = all
  stock: StockState;
  left?: number;
}

export interface Plain extends Base {
  type: "no_turn" | "not_open" | "paused" | "resumed" | "closed" | "missed" | "none" | "stale";
  id?: string;
  state?: SaleState;
  why?: string;
}

export interface Limited extends Base {
  type: "limited";
  id?: string;
  retry_after_ms: number;
}

export interface Failure extends Base {
  type: "error";
  id?: string;
  code: string;
  msg: string;
  retry_after_ms?: number;
}

export interface Moving extends Base {
  type: "moving";
  retry_in_ms: number;
}

export type Frame = Welcome | Lobby | Queued | Turn | OrderNews | SoldOut | Plain | Limited | Failure | Moving;

/** Says whether an order keeps its stock and blocks its user from another one. */
export function isLive(order: Order): boolean {
  return order.status === "reserved" || order.status === "confirmed" || order.status === "paid";
}

/** Close codes after which coming back would change nothing. */
/** The close code of a token that is not valid: the user's, or that of the seat. */
export const BAD_TOKEN = 4401;

export function isFinal(code: number): boolean {
  return (code >= 4400 && code <= 4407) || code === 4409;
}
