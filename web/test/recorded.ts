import { vi } from "vitest";
import { Clock } from "../src/clock.ts";
import { type Frame, isLive, type Order, type OrderStatus, type Welcome } from "../src/protocol.ts";
import { type Memory, Sluice, type State } from "../src/sluice.ts";
import { FakeSocket } from "./stage.ts";

// The recordings of frames/ are of real servers; `make web-frames` makes them anew. See e2e/recording.mjs.

interface Said {
  type: string;
  id?: string;
  item?: string;
  qty?: number;
  seat?: string;
  order?: string;
}

/** What happened on a connection: the page was told something, or said something, which is how its shopper acted. */
export type Entry = { heard: Frame; said?: never } | { said: Said; heard?: never };

export interface Connection {
  frames: Entry[];
  close?: { code: number; reason: string }; // absent = the page was left
}

/** What one page heard and said, and what it showed in the end. */
export interface Visit {
  who: string;
  connections: Connection[];
  end: { view: string; number?: number; order?: string; status?: OrderStatus };
}

const files = import.meta.glob<{ journey: string; visits: Visit[] }>("./frames/*.json", {
  eager: true,
  import: "default",
});

/** All visits of all recordings. */
export const visits: Visit[] = Object.values(files).flatMap(({ journey, visits }) =>
  visits.map((visit) => ({ ...visit, who: `${journey}: ${visit.who}` })),
);

export const heardIn = (connections: Connection[]): Frame[] =>
  connections.flatMap(({ frames }) => frames.flatMap(({ heard }) => heard ?? []));

const rank: Record<OrderStatus, number> = { reserved: 0, confirmed: 1, paid: 2, cancelled: 3, expired: 3, rejected: 3 };

/** Plays a visit to a client. Whatever comes, it looks at each state, and throws when one must not follow another. */
export class Replay {
  /** Is called after each frame, with all that were heard so far. */
  look: ((page: Replay, heard: Frame[]) => void) | undefined;

  private readonly heard: Frame[] = [];
  private client: Sluice | undefined;
  private readonly sockets: FakeSocket[] = [];
  private used = 0; // sockets that were given to a connection
  private memory: Memory = {};
  private state: State | undefined;
  private telling: Frame | undefined;
  private request = ""; // id of the next grab
  private readonly ranks = new Map<string, number>();
  private readonly aheads = new Map<string, number>();

  /** Plays connections, one after the other; the first is there already when it is gone on with. */
  play(connections: Connection[], goOn = false): this {
    connections.forEach((connection, i) => {
      const isNew = i > 0 || !goOn;
      // What was known from before the recording.
      const named = connection.frames[0]?.said?.order;
      if (named && !this.memory.order) this.memory = { ...this.memory, order: named };
      if (isNew) this.arrive();
      for (const [n, entry] of connection.frames.entries()) {
        if (entry.heard) {
          this.hear(entry.heard);
          this.heard.push(entry.heard);
          this.look?.(this, this.heard);
        } else if (n > 0 || !isNew) this.act(entry.said); // the client says the first hello by itself
      }
      if (connection.close) this.lose(connection.close.code, connection.close.reason);
      else if (i < connections.length - 1) this.reload();
    });
    return this;
  }

  /** Connects, by itself or because the shopper wants it. */
  arrive(): void {
    if (!this.client) {
      this.client = this.open();
      this.client.start();
    }
    for (let s = 0; s < 70 && this.sockets.length === this.used; s++) vi.advanceTimersByTime(1000);
    if (this.sockets.length === this.used) this.client.join();
    this.used = this.sockets.length;
    this.socket.accept();
  }

  hear(frame: Frame): void {
    if (this.sockets.length > this.used) this.arrive(); // the client has given a connection up
    this.telling = frame;
    this.socket.say(frame);
    this.telling = undefined;
  }

  /** Does what the shopper did. What the client says by itself it has said already. */
  act(said: Said): void {
    const { view, pending } = this.now;
    if (said.type === "leave") this.client?.leave();
    if (said.type === "grab" && !pending) {
      this.request = said.id ?? "";
      this.client?.grab(said.item ?? "", said.qty ?? 1);
    }
    const ended = ["missed", "none", "left"].includes(view.name) || (view.name === "order" && !isLive(view.order));
    if (said.type === "hello" && !said.seat && ended) this.client?.join();
  }

  lose(code: number, reason = ""): void {
    this.socket.hangUp(code, reason);
  }

  /**
   * Loses the connection and comes back to what a server says that knows all that was heard so far: a welcome, one state,
   * what became of an order that was asked for, and the answer of a request that is made again.
   */
  comeBack(heard: Frame[]): void {
    const welcome = heard.findLast((frame) => frame.type === "welcome");
    if (this.now.view.name === "left" || this.now.view.name === "refused") return;
    if (this.now.link === "open") this.lose(1006);
    this.arrive();
    if (!welcome) return;
    const { state, order, past, pause } = standing(heard);
    const number = welcome.number ?? heard.findLast((frame) => frame.type === "queued")?.number;
    const hello = this.socket.sent[0];
    const still = welcome.sale.state === "paused" || welcome.sale.state === "recovering";
    const sale = { ...welcome.sale, state: pause ?? (still ? "open" : welcome.sale.state) };
    this.hear({ ...welcome, ...(number && welcome.seat && { number }), sale } as Welcome);
    if (state) this.hear(state);
    const named = order ?? past;
    if (named && hello?.order === named.id) this.hear({ type: "order", at: state?.at ?? welcome.at, order: named });
    const { pending } = this.now;
    const answer = heard.findLast((frame) => pending && "id" in frame && frame.id === pending.id && settles(frame));
    if (answer) this.hear("order" in answer && order ? ({ ...answer, order } as Frame) : answer);
  }

  /** What the page would show. */
  get shown() {
    const { view, number, pending } = this.now;
    return {
      view: pending ? "grabbing" : view.name,
      number: view.name === "refused" ? undefined : number, // whatever was known before
      ahead: view.name === "queued" ? view.ahead : undefined,
      order: view.name === "order" ? view.order.id : undefined,
      status: view.name === "order" ? view.order.status : undefined,
    };
  }

  get now(): State {
    return this.client?.state as State;
  }

  private get socket(): FakeSocket {
    return this.sockets.at(-1) as FakeSocket;
  }

  private reload(): void {
    this.client?.stop();
    this.client = undefined;
    this.state = undefined;
  }

  private open(): Sluice {
    return new Sluice({
      url: "ws://shop/ws/v1/sales/phone-x",
      token: "token",
      load: () => this.memory,
      save: (memory) => {
        this.memory = memory;
      },
      onState: (state) => {
        this.check(this.state, state);
        this.state = state;
      },
      clock: new Clock(() => performance.now()),
      random: () => 0,
      newId: () => this.request,
      open: () => {
        const socket = new FakeSocket();
        this.sockets.push(socket);
        return socket as unknown as WebSocket;
      },
    });
  }

  private check(before: State | undefined, after: State): void {
    const frame = this.telling;
    const must = (holds: boolean, sentence: string) => {
      if (!holds) throw new Error(`${sentence}, by ${JSON.stringify(frame)} after ${JSON.stringify(before)}`);
    };
    const orders = frame && "order" in frame && frame.type !== "lobby";
    if (before?.view.name === "order" && isLive(before.view.order) && !before.fresh && frame && !orders) {
      must(after.view === before.view, "a live order is replaced by news of the line");
    }
    if (after.view.name === "order") {
      const { id, status } = after.view.order;
      must(rank[status] >= (this.ranks.get(id) ?? 0), "an order goes back");
      this.ranks.set(id, rank[status]);
    }
    if (after.view.name === "queued") {
      const seat = `${this.memory.seat} ${after.view.number}`;
      must(after.view.ahead <= (this.aheads.get(seat) ?? Number.POSITIVE_INFINITY), "somebody got in front");
      this.aheads.set(seat, after.view.ahead);
    }
    if (before?.pending && frame && after.pending?.id !== before.pending.id) {
      const answered = "id" in frame && frame.id === before.pending.id && settles(frame);
      must(answered || (orders === true && isLive(frame.order)), "a request is forgotten before it is answered");
    }
  }
}

/** Says whether a frame that names a request settles it; its outcome may be unknown, or it was not taken at all. */
const settles = (frame: Frame) =>
  frame.type !== "limited" && !(frame.type === "error" && frame.code === "unavailable") && frame.type !== "welcome";

const isPlace = (frame: Frame | undefined) => ["lobby", "queued", "turn"].includes(frame?.type ?? "");

/** What a server that has said all this would say to somebody who comes back: the state, and why all stands still. */
export function standing(heard: Frame[]) {
  let state: Frame | undefined;
  let order: Order | undefined;
  let past: Order | undefined;
  let pause: "paused" | "recovering" | undefined;
  for (const frame of heard) {
    switch (frame.type) {
      case "welcome":
        state = order = undefined; // of the seat before
        pause = frame.sale.state === "paused" || frame.sale.state === "recovering" ? frame.sale.state : undefined;
        break;
      case "success":
      case "already":
      case "order":
        if (order?.id === frame.order.id && rank[frame.order.status] < rank[order.status]) break;
        if (!isLive(frame.order) && order?.id !== frame.order.id && isPlace(state) && !frame.id) {
          past = frame.order; // is told beside the place, which counts
          break;
        }
        order = frame.order;
        // Whose order has ended has no seat any more; what became of it is told to who asks.
        state = isLive(order)
          ? { type: "order", at: frame.at, order }
          : { type: "missed", at: frame.at, why: "expired" };
        break;
      case "sold_out":
        if (frame.id === undefined && frame.item === undefined) {
          if (state?.type === "queued" && frame.stock === "held") state = { ...state, at: frame.at, stock: "held" };
          else if (!order || !isLive(order)) state = frame;
        }
        break;
      case "paused":
        pause = frame.why === "recovering" ? "recovering" : "paused";
        state ??= frame;
        break;
      case "resumed":
        pause = undefined;
        break;
      case "lobby":
      case "queued":
      case "turn":
      case "missed":
      case "none":
      case "closed":
        state = frame;
        break;
    }
  }
  return { state, order, past, pause };
}
