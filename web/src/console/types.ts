// What the operator's API answers. Times of a sale are RFC 3339 and its lengths are Go durations, as in a sale file;
// everything else has milliseconds since the epoch.

import type { LineOrder, OrderStatus, SaleState, StockState, Text } from "../protocol.ts";

export type { LineOrder, OrderStatus, SaleState, StockState, Text } from "../protocol.ts";

export interface Line {
  order: LineOrder;
  rate: number;
  active: number;
  ratio: number;
  turn: string;
  grace: string;
}

export interface FileItem {
  id: string;
  title?: Text;
  stock: number; // in total
  price?: number;
}

/** The settings of a sale, as a sale file has them. */
export interface SaleFile {
  id: string;
  title?: Text;
  items: FileItem[];
  currency?: string;
  opens_at: string;
  closes_at: string;
  lobby: string;
  limit: number;
  line: Line;
  hold: string;
  access?: unknown;
}

/** A sale as its operator sees it. Figures are absent where the node that answers does not have them. */
export interface Sale extends SaleFile {
  items: (FileItem & { left?: number })[];
  state?: SaleState;
  stock?: StockState;
  waiting?: number;
  turns?: number;
  served?: number;
  issued?: number;
  epoch?: number;
  rate?: number;
  archived?: Archive;
}

/** What is kept of a sale that was taken out of Redis, beside its settings and orders. */
export interface Archive {
  at: number;
  done?: number; // absent = Redis may still have something of it
  audit: { at: number; balanced: boolean; items: { item: string; total: number; sold: number }[] };
  purge: boolean; // its users are to be purged, or were
  purged?: number;
}

export interface About {
  node: string;
  version: string;
  broker_ui_url?: string;
  limits: { user: string; address: string; node: string };
  payment: "demo" | "provider";
  time: number;
}

/** How grabs end, by the names of the contract, and those that were not answered. */
export const results = ["success", "already", "sold_out", "no_turn", "not_open", "failed"] as const;
export type Result = (typeof results)[number];

/** By what a request is limited. */
export const limiters = ["user", "address", "node"] as const;
export type Limiter = (typeof limiters)[number];

export interface NodeFigures {
  node: string;
  started: number;
  at: number;
  connections: number;
  shoppers: number;
  grabs?: Partial<Record<Result, number>>;
  limited?: Partial<Record<Limiter, number>>;
}

export interface LineFigures {
  waiting: number;
  recalled: number;
  turns: number;
  served: number;
  issued: number;
  granted: number;
  left: number;
  held: number;
  rate: number;
}

export interface OrderFigures {
  taken: number | null;
  written: number | null;
  outbox: number | null;
  broker: number | null;
  dead: number | null;
}

export interface Audit {
  at: number;
  balanced: boolean;
  imbalance: Record<string, number> | null;
  problems: string[] | null;
}

/** One frame of the live stream. */
export interface LiveFrame {
  at: number;
  node: string;
  sale: Sale | null; // null while neither this node nor the database has it
  line: LineFigures | null;
  orders: OrderFigures;
  audit: Audit | null;
  nodes: NodeFigures[];
  troubles: string[];
}

export interface OrderRow {
  id: string;
  item: string;
  user: string;
  qty: number;
  status: OrderStatus;
  created_at: number;
  pay_by?: number;
  paid_at?: number;
}

export interface LogEntry {
  id: number;
  at: number;
  who: string;
  action: string;
  sale: string;
  before: SaleFile | null;
  after: SaleFile | null;
}

/** What a request of a change is made of. */
export type Move = "open" | "pause" | "resume" | "close" | "recover" | "archive";
