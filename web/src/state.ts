import {
  type Failure,
  type Frame,
  isLive,
  type Lobby,
  type Order,
  type OrderNews,
  type OrderStatus,
  type Queued,
  type Sale,
  type SaleState,
  type SoldOut,
  type StockState,
  type Turn,
  type Welcome,
} from "./protocol.ts";

/** What the shopper is in. Exactly one at a time; banners and notices stand beside it. */
export type View =
  | { name: "connecting" }
  | { name: "scheduled"; joinsAt: number; opensAt: number }
  | ({ name: "lobby" } & Omit<Lobby, "type">)
  | ({ name: "queued" } & Omit<Queued, "type">)
  | ({ name: "turn"; began: number } & Omit<Turn, "type">)
  | { name: "order"; order: Order; already: boolean }
  | { name: "soldOut"; stock: StockState }
  | { name: "missed"; why: string }
  | { name: "paused" }
  | { name: "closed" }
  | { name: "none" }
  | { name: "left" }
  | { name: "refused"; code: number; reason: string };

/** A passing word about the last thing that was tried. */
export type Notice =
  | { kind: "limited" }
  | { kind: "busy" }
  | { kind: "noTurn" }
  | { kind: "notOpen"; state?: SaleState }
  | { kind: "itemGone"; item: string; stock: StockState }
  | { kind: "fewer"; left: number }
  | { kind: "error"; code: string; msg: string }
  | { kind: "unanswered" } // a payment or a cancellation
  | { kind: "orderEnded"; status: Ended }; // one from before, while there is a new place

/** How an order ends that does not last. */
export type Ended = "cancelled" | "expired" | "rejected";

/** What is being done to an order. */
export type Change = "pay" | "cancel";

export interface Request {
  id: string;
  item: string;
  qty: number;
}

export type Link = "idle" | "connecting" | "open" | "waiting" | "closed";

export interface State {
  link: Link;
  view: View;
  sale?: Sale;
  user?: string;
  number?: number; // of the seat, where one is known
  payment?: Welcome["payment"];
  pending?: Request; // the grab that waits for its answer
  changing?: Change; // what was asked for the order and is not answered yet
  jump?: { why: string; at: number }; // why the place or the time to wait has jumped last, and when
  pause?: string; // why nothing is given out at the moment
  notice?: Notice;
  at: number; // when the newest state was written; positions from before it are old news
  fresh: boolean; // just welcomed: the state frame that follows holds, whatever was known before
}

export const initial: State = { link: "idle", view: { name: "connecting" }, at: 0, fresh: false };

/**
 * What a frame makes of the state. It changes nothing outside, so that any order of frames can be tried out; an older
 * position, a repeated frame and an answer to a question that was not asked leave things as they are.
 */
export function reduce(s: State, f: Frame): State {
  switch (f.type) {
    case "welcome":
      return welcome(s, f);
    case "lobby":
      if (isOld(s, f.at) || hasOrder(s)) return s;
      return shown(s, f.at, { name: "lobby", ...omitType(f) });
    case "queued":
      if (isOld(s, f.at) || hasOrder(s)) return s;
      return shown({ ...s, number: f.number, jump: jumped(s, f) }, f.at, { name: "queued", ...omitType(f) });
    case "turn":
      return turn(s, f);
    case "success":
    case "already":
    case "order":
      return order(s, f);
    case "sold_out":
      return soldOut(s, f);
    case "no_turn":
      return f.id === s.pending?.id ? { ...s, pending: undefined, notice: { kind: "noTurn" } } : s;
    case "not_open":
      return f.id === s.pending?.id ? { ...s, pending: undefined, notice: { kind: "notOpen", state: f.state } } : s;
    case "missed":
      return settle(s, f.at, { name: "missed", why: f.why ?? "expired" });
    case "none":
      return none(s, f.at);
    case "closed":
      return settle({ ...s, pause: undefined }, f.at, { name: "closed" });
    case "paused": {
      const view: View = s.view.name === "connecting" ? { name: "paused" } : s.view;
      return { ...s, view, pause: f.why ?? "operator" };
    }
    case "resumed":
      return { ...s, pause: undefined };
    case "limited":
      return { ...s, notice: { kind: "limited" } };
    case "error":
      return failure(s, f);
    default:
      return s; // stale and moving change the connection, not what is shown; an unknown type is of a newer server
  }
}

/** A welcome begins anew: what follows is by definition the newest, also when the server's clock was set back. */
function welcome(s: State, f: Welcome): State {
  const pause = f.sale.state === "paused" ? "operator" : f.sale.state === "recovering" ? "recovering" : undefined;
  return {
    ...s,
    link: "open",
    sale: f.sale,
    user: f.user,
    number: f.number,
    payment: f.payment,
    pause,
    notice: undefined,
    at: 0,
    fresh: true,
  };
}

/**
 * Positions are conflated on their way, so that one may come behind a frame that was written later. Whoever had a turn when
 * the last unit was reserved is told so and in the same moment that they are in line again: that is no old position.
 */
function isOld(s: State, at: number): boolean {
  if (s.fresh) return false;
  const inLine = s.view.name === "queued" || s.view.name === "lobby";
  const held = s.view.name === "soldOut" && s.view.stock === "held";
  return at < s.at || (at === s.at && !inLine && !held);
}

/** A jump comes with one frame, and the next one is a second away: it is told long enough to be read. */
const JUMP_MS = 20_000;

function jumped(s: State, f: Queued): State["jump"] {
  if (f.reason) return { why: f.reason, at: f.at };
  return s.jump && f.at - s.jump.at < JUMP_MS ? s.jump : undefined;
}

/** A live order stands above what a line says, until a new welcome says otherwise: its end is told by an order frame. */
function hasOrder(s: State): boolean {
  return !s.fresh && s.view.name === "order" && isLive(s.view.order);
}

function shown(s: State, at: number, view: View): State {
  const stays = s.notice?.kind === "orderEnded" && view.name !== "order"; // a place moves each second
  return { ...s, at, view, notice: stays ? s.notice : undefined, fresh: false };
}

/** Whether there is a place that can still become an order. */
export function inLine({ view }: State): boolean {
  return view.name === "lobby" || view.name === "queued" || view.name === "turn";
}

function isEnded(status: OrderStatus): status is Ended {
  return status === "cancelled" || status === "expired" || status === "rejected";
}

function turn(s: State, f: Turn): State {
  if (f.at < s.at || hasOrder(s)) return s;
  // The same turn told again, with another end, keeps its beginning: the clock's bar does not jump back to full.
  const began = s.view.name === "turn" ? s.view.began : f.at;
  return shown(s, f.at, { name: "turn", began, ...omitType(f) });
}

const rank: Record<OrderStatus, number> = { reserved: 0, confirmed: 1, paid: 2, cancelled: 3, expired: 3, rejected: 3 };

/** An order only ever moves forward, and only a live one may take the place of another that is live. */
function order(s: State, f: OrderNews): State {
  const known = s.view.name === "order" ? s.view : undefined;
  const answers = f.id !== undefined && f.id === s.pending?.id;
  const pending = answers || isLive(f.order) ? undefined : s.pending;
  if (known && known.order.id === f.order.id) {
    if (rank[f.order.status] < rank[known.order.status]) return { ...s, pending };
    const view = { ...known, order: { ...known.order, ...f.order } };
    return { ...shown(s, Math.max(s.at, f.at), view), pending };
  }
  if (known && isLive(known.order) && !isLive(f.order)) return { ...s, pending };
  if (!answers && isEnded(f.order.status) && inLine(s) && !s.fresh) {
    return { ...s, pending, notice: { kind: "orderEnded", status: f.order.status } }; // the place is what counts now
  }
  const view: View = { name: "order", order: f.order, already: f.type === "already" };
  return { ...shown(s, Math.max(s.at, f.at), view), pending };
}

function soldOut(s: State, f: SoldOut): State {
  if (f.id !== undefined) {
    if (f.id !== s.pending?.id) return s;
    const { item, qty } = s.pending;
    s = { ...s, pending: undefined };
    if (s.view.name === "turn") {
      if (f.stock === "available") return { ...s, notice: { kind: "fewer", left: f.left ?? Math.max(1, qty - 1) } };
      const items = s.view.items.map((i) => (i.id === (f.item || item) ? { ...i, stock: 0 } : i));
      s = { ...s, view: { ...s.view, items } };
      if (items.some((i) => i.stock > 0)) {
        return { ...s, notice: { kind: "itemGone", item: f.item || item, stock: f.stock } };
      }
    }
  } else if (f.item) {
    if (s.view.name !== "turn") return s;
    return {
      ...s,
      view: { ...s.view, items: s.view.items.map((i) => (i.id === f.item ? { ...i, stock: 0 } : i)) },
    };
  }
  // All of it. The line stays while units may come back, and says so; whoever bought is not concerned.
  if (f.stock === "held" && s.view.name === "queued") {
    return { ...s, at: Math.max(s.at, f.at), view: { ...s.view, stock: "held" } };
  }
  if (f.stock === "available") return s;
  return settle(s, f.at, { name: "soldOut", stock: f.stock });
}

/** Without a seat, before joining is possible, all there is to do is to wait for that. */
function none(s: State, at: number): State {
  const sale = s.sale;
  if (sale?.state === "scheduled" && s.view.name !== "lobby") {
    const view: View = { name: "scheduled", joinsAt: sale.lobby_at ?? sale.opens_at, opensAt: sale.opens_at };
    return settle(s, at, view);
  }
  return settle({ ...s, number: undefined }, at, { name: s.view.name === "left" ? "left" : "none" });
}

/** The end of something. An order that is live outlives it. */
function settle(s: State, at: number, view: View): State {
  if (at < s.at || hasOrder(s)) return s;
  return { ...shown(s, at, view), notice: s.notice?.kind === "noTurn" ? s.notice : undefined };
}

/** What went wrong. `unavailable` leaves the request pending: its outcome is not known, and a repeat settles it. */
function failure(s: State, f: Failure): State {
  if (f.code === "unavailable") return { ...s, notice: { kind: "busy" } };
  const pending = f.id !== undefined && f.id === s.pending?.id ? undefined : s.pending;
  return { ...s, pending, notice: { kind: "error", code: f.code, msg: f.msg } };
}

function omitType<T extends { type: string }>({ type: _, ...rest }: T): Omit<T, "type"> {
  return rest;
}
