import { vi } from "vitest";
import { Clock } from "../src/clock.ts";
import type { Frame, Order, OrderStatus, Queued, Sale, Turn, Welcome } from "../src/protocol.ts";
import { type Memory, Sluice, type State } from "../src/sluice.ts";

/** The server's time in these tests: years away from that of the machine they run on. */
export const T = Date.UTC(2031, 4, 17, 12);

export function sale(change: Partial<Sale> = {}): Sale {
  return {
    id: "phone-x",
    title: { en: "Phone X", zh: "手机 X" },
    items: [
      { id: "black", title: { en: "Black", zh: "黑色" }, price: 299900, stock: 5, total: 600 },
      { id: "white", title: { en: "White", zh: "白色" }, price: 319900, stock: 5, total: 400 },
    ],
    currency: "CNY",
    opens_at: T - 60_000,
    closes_at: T + 3_600_000,
    state: "open",
    stock: "available",
    waiting: 100,
    rate: 10,
    limit: 1,
    line: { order: "fifo", grace: 600_000 },
    hold: 900_000,
    ...change,
  };
}

export const welcome = (change: Partial<Welcome> = {}): Welcome => ({
  type: "welcome",
  at: T,
  sale: sale(),
  user: "u",
  seat: "seat-1",
  number: 50,
  epoch: 1,
  node: "n",
  ...change,
});

export const queued = (change: Partial<Queued> = {}): Queued => ({
  type: "queued",
  at: T,
  number: 50,
  ahead: 20,
  total: 100,
  rate: 10,
  recalled: 0,
  stock: "available",
  chance: "likely",
  ...change,
});

export const turn = (change: Partial<Turn> = {}): Turn => ({
  type: "turn",
  at: T,
  until: T + 60_000,
  limit: 1,
  items: [
    { id: "black", stock: 5 },
    { id: "white", stock: 5 },
  ],
  ...change,
});

export const order = (status: OrderStatus = "reserved", change: Partial<Order> = {}): Order => ({
  id: "order-1",
  sale: "phone-x",
  item: "black",
  qty: 1,
  status,
  ...change,
});

/** A socket whose other end is the test. */
export class FakeSocket {
  readyState = 0;
  sent: { type: string; [key: string]: unknown }[] = [];
  closed = false;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  close(): void {
    this.closed = true;
    this.readyState = 3;
  }

  accept(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  say(...frames: (Frame | { type: "stale"; at: number })[]): void {
    for (const frame of frames) this.onmessage?.({ data: JSON.stringify(frame) });
  }

  hangUp(code: number, reason = ""): void {
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }

  all(type: string) {
    return this.sent.filter((frame) => frame.type === type);
  }
}

/** A client on fake sockets. Time is vitest's fake time; random is what the test says. */
export function shopper(random = () => 0.5, memory: Memory = {}) {
  const sockets: FakeSocket[] = [];
  const seen: State[] = [];
  let ids = 0;
  const kept = { memory };
  const client = new Sluice({
    url: "ws://shop/ws/v1/sales/phone-x",
    token: "token",
    load: () => kept.memory,
    save: (memory) => {
      kept.memory = memory;
    },
    onState: (state) => seen.push(state),
    clock: new Clock(() => performance.now()),
    random,
    newId: () => `request-${++ids}`,
    open: () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
  });
  return {
    client,
    sockets,
    seen,
    kept,
    get socket() {
      return sockets.at(-1) as FakeSocket;
    },
    get view() {
      return client.state.view;
    },
    /** Connects and is welcomed, and then told frames. */
    arrive(...frames: Frame[]) {
      if (sockets.length === 0) client.start();
      this.socket.accept();
      this.socket.say(welcome(), ...frames);
      return this;
    },
    /** Lets time pass until the next attempt, but no longer than that; returns how many there were: 0 or 1. */
    comeBack(ms = 30_000) {
      const before = sockets.length;
      for (let passed = 0; passed < ms && sockets.length === before; passed++) vi.advanceTimersByTime(1);
      return sockets.length - before;
    },
  };
}
