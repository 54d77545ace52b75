import { Backoff, SETTLED_MS } from "./backoff.ts";
import { changeOrder } from "./cashier.ts";
import { Clock } from "./clock.ts";
import { BAD_TOKEN, type Frame, isFinal, isLive, type Order } from "./protocol.ts";
import { type Change, initial, inLine, type Request, reduce, type State } from "./state.ts";

export { reduce, type State, type View } from "./state.ts";

/** What is kept between visits for one user in one sale. */
export interface Memory {
  seat?: string; // seat token
  order?: string; // id of an order that was told of
  left?: boolean; // gave up the place on purpose: the page does not join by itself again
}

export interface Options {
  url: string; // ws(s)://host/ws/v1/sales/{sale}
  api?: string; // http(s)://host/api/v1, where orders are paid and cancelled; of the same host unless given
  token: string;
  code?: string | undefined; // an access code, where the sale asks for one
  challenge?: string; // what solves a challenge, likewise: the answer of the widget of your verifier
  load: () => Memory;
  save: (memory: Memory) => void;
  onState: (state: State) => void;
  clock?: Clock;
  random?: () => number;
  newId?: () => string;
  open?: (url: string, protocol: string) => WebSocket;
}

const WELCOME_MS = 15_000; // a connection that was not welcomed by then is given up
const ANSWER_MS = 12_000; // a grab that was not answered by then is sent again; the server gives itself ten seconds
const QUIET_MS = 10_000; // a connection that said nothing for so long is asked, when somebody looks at the page again

/**
 * A shopper's connection to one sale: connects and comes back, keeps the seat, and tells what the shopper is in. It knows
 * nothing of how that is shown.
 *
 * One request id stands for one wish to buy. It is sent again, also on the next connection, until an answer to it has
 * come, so that no lost reply can take a second unit.
 */
export class Sluice {
  readonly clock: Clock;
  state: State = initial;

  readonly #backoff: Backoff;
  readonly #random: () => number;
  #socket: WebSocket | undefined;
  #openedAt = 0;
  #heardAt = 0;
  #movingUntil = 0; // when to come back, as the server asked for; 0 = it did not
  #leaving = false;
  #seatless = false; // the seat that is kept was not taken, so it is tried without
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();

  readonly #options: Options;

  constructor(options: Options) {
    this.#options = { ...options };
    this.clock = options.clock ?? new Clock();
    this.#random = options.random ?? Math.random;
    this.#backoff = new Backoff(this.#random);
  }

  /** Connects at once. Who left on purpose stays out until join is called. */
  start(): void {
    if (this.#options.load().left) {
      this.#set({ ...this.state, view: { name: "left" } });
      return;
    }
    this.#connect();
  }

  /** Ends the connection for good. The seat stays. */
  stop(): void {
    this.#drop();
    this.#clearAll();
    this.#set({ ...this.state, link: "closed" });
  }

  /** Takes a new place: after one that was missed, left, used up by an order that ended, or refused for want of these. */
  join(code = this.#options.code, challenge?: string): void {
    Object.assign(this.#options, { code, challenge });
    this.#leaving = false;
    this.#options.save({});
    this.#set({
      ...this.state,
      view: { name: "connecting" },
      number: undefined,
      notice: undefined,
      pending: undefined,
    });
    if (this.state.link === "open") this.#hello();
    else this.#connect();
  }

  /** Gives up the place. It is asked for until the server says that it is done. */
  leave(): void {
    this.#leaving = true;
    this.#send({ type: "leave" });
  }

  /** Asks for units, with a new request id; does nothing while an earlier request waits for its answer. */
  grab(item: string, qty: number): void {
    if (this.state.pending) return;
    const id = (this.#options.newId ?? (() => crypto.randomUUID()))();
    this.#set({ ...this.state, pending: { id, item, qty }, notice: undefined });
    this.#sendGrab();
  }

  /** Pays the order, in demonstration; where a payment provider does that, the server refuses. Repeating it is safe. */
  pay(): Promise<void> {
    return this.#change("pay");
  }

  /** Cancels the order, unless it is paid: its units go back into the sale. Repeating it is safe. */
  cancel(): Promise<void> {
    return this.#change("cancel");
  }

  /**
   * Somebody looks at the page again, or the network is back. A phone that slept may hold a connection that is long dead
   * and tells nobody: it is asked once more who we are, and given up when it does not answer.
   */
  recheck(): void {
    if (this.state.link === "waiting") {
      this.#after("reconnect", this.#random() * 1000, () => this.#connect());
    } else if (this.state.link === "open" && performance.now() - this.#heardAt > QUIET_MS) {
      this.#hello();
      this.#after("welcome", WELCOME_MS, () => this.#lost(0, ""));
    }
  }

  async #change(what: Change): Promise<void> {
    const { view, changing } = this.state;
    if (view.name !== "order" || changing) return;
    this.#set({ ...this.state, changing: what, notice: undefined });
    const api = this.#options.api ?? `${new URL(this.#options.url.replace(/^ws/, "http")).origin}/api/v1`;
    const answer = await changeOrder(api, this.#options.token, view.order, what);
    const answered: State = { ...this.state, changing: undefined };
    if (answered.view.name !== "order" || answered.view.order.id !== view.order.id) {
      this.#set(answered); // there is a new place by now: what became of that order was told over the socket
    } else if (answer === "unanswered") {
      this.#set({ ...answered, notice: { kind: "unanswered" } });
    } else if (answer === "refused") {
      this.#set({ ...answered, notice: { kind: "error", code: what, msg: "" } });
    } else {
      this.#note(answer);
      this.#set(reduce(answered, { type: "order", at: answered.at, order: answer }));
    }
  }

  #connect(): void {
    this.#drop();
    this.#clear("reconnect");
    this.#set({ ...this.state, link: "connecting" });
    const open = this.#options.open ?? ((url, protocol) => new WebSocket(url, protocol));
    const socket = open(this.#options.url, "sluice.v1");
    this.#socket = socket;
    this.#after("welcome", WELCOME_MS, () => this.#lost(0, ""));
    socket.onopen = () => {
      if (socket === this.#socket) this.#hello();
    };
    socket.onmessage = (event) => {
      if (socket === this.#socket) this.#receive(String(event.data));
    };
    socket.onclose = (event) => {
      if (socket === this.#socket) this.#lost(event.code, event.reason);
    };
  }

  #hello(): void {
    const { token, code, challenge, load } = this.#options;
    const { seat, order } = load();
    this.#send({ type: "hello", token, seat: this.#seatless ? undefined : seat, order, code, challenge });
  }

  #receive(text: string): void {
    let frame: Frame;
    try {
      frame = JSON.parse(text);
    } catch {
      return; // not a frame; the next one is
    }
    this.#heardAt = performance.now();
    // Only frames about the sale carry the sale's time; the others are by the clock of whichever node we are on.
    if (frame.type === "welcome") this.clock.reset();
    if (frame.type !== "error" && frame.type !== "limited" && frame.type !== "moving") this.clock.sample(frame.at);
    const before = this.state;
    this.#set(reduce(before, frame));
    this.#follow(frame, before);
    if (!this.state.pending) this.#clear("grab");
  }

  /** Keeps which order is asked for on the next visit: also one that has ended, or nobody would say there what it came to. */
  #note(order: Order): void {
    const kept = this.#options.load();
    if (isLive(order) || !kept.order) this.#options.save({ ...kept, order: order.id });
  }

  /** What has to be done about a frame, besides showing what it says. */
  #follow(frame: Frame, before: State): void {
    switch (frame.type) {
      case "welcome":
        this.#clear("welcome");
        this.#clear("hello");
        this.#seatless = false;
        if (before.link !== "open") this.#openedAt = performance.now();
        if (frame.seat) this.#options.save({ ...this.#options.load(), seat: frame.seat, left: undefined });
        if (this.#leaving) this.#send({ type: "leave" });
        if (this.state.pending) this.#sendGrab();
        break;
      case "none":
        if (this.#leaving) this.#gone();
        else if (this.state.view.name === "scheduled") this.#joinAt(this.state.view.joinsAt);
        break;
      case "missed":
        if (this.#leaving) this.#gone();
        break;
      case "lobby":
      case "queued":
      case "turn":
        // There is a new place, taken on another device: the order before it is history.
        if (before.view.name === "order" && !before.fresh && this.state.view.name !== "order") {
          this.#options.save({ ...this.#options.load(), order: undefined });
        }
        break;
      case "success":
      case "already":
      case "order":
        if (inLine(this.state))
          this.#options.save({ ...this.#options.load(), order: undefined }); // told once, it is history
        else this.#note(frame.order);
        break;
      case "limited":
        this.#retry(frame.id, frame.retry_after_ms);
        break;
      case "error":
        if (frame.code === "unavailable" || frame.retry_after_ms) this.#retry(frame.id, frame.retry_after_ms ?? 1000);
        break;
      case "moving":
        this.#movingUntil = performance.now() + frame.retry_in_ms;
        this.#after("reconnect", frame.retry_in_ms, () => this.#connect());
        break;
    }
  }

  /** Asks again for what was refused for the moment: the grab, or else the hello. */
  #retry(id: string | undefined, after: number): void {
    if (id !== undefined) {
      if (id === this.state.pending?.id) this.#after("grab", after, () => this.#sendGrab());
    } else {
      this.#after("hello", after, () => this.#hello());
    }
  }

  /** Nobody is told when joining becomes possible, so the page asks then; not all pages in the same instant. */
  #joinAt(at: number): void {
    const wait = Math.max(0, at - this.clock.now());
    // A timer cannot wait longer than 2^31 ms.
    this.#after("hello", Math.min(wait, 2 ** 31 - 4000) + this.#random() * 3000, () => this.#hello());
  }

  #sendGrab(): void {
    const request: Request | undefined = this.state.pending;
    if (!request) return;
    this.#send({ type: "grab", ...request });
    this.#after("grab", ANSWER_MS, () => this.#sendGrab());
  }

  /** The connection is gone. What was shown stays shown: the seat is kept on the other side. */
  #lost(code: number, reason: string): void {
    this.#drop();
    this.#clear("welcome");
    this.#clear("hello");
    this.#clear("grab"); // it is sent again with the next welcome
    if (this.#leaving && code === 1000) {
      this.#gone();
      return;
    }
    if (code === BAD_TOKEN && !this.#seatless && this.#options.load().seat) {
      this.#seatless = true; // an operator who has changed the secret voids seats and not always users, who are known without
      this.#connect();
      return;
    }
    if (isFinal(code)) {
      this.#clearAll();
      this.#set({ ...this.state, link: "closed", pending: undefined, view: { name: "refused", code, reason } });
      return;
    }
    if (this.#openedAt > 0 && performance.now() - this.#openedAt >= SETTLED_MS) this.#backoff.reset();
    this.#openedAt = 0;
    const asked = this.#movingUntil - performance.now();
    this.#movingUntil = 0;
    this.#set({ ...this.state, link: "waiting" });
    this.#after("reconnect", asked > 0 ? asked : this.#backoff.next(), () => this.#connect());
  }

  /** The place has been given up, as was wished. */
  #gone(): void {
    this.#leaving = false;
    this.#drop();
    this.#clearAll();
    this.#options.save({ left: true });
    this.#set({ ...this.state, link: "idle", number: undefined, pending: undefined, view: { name: "left" } });
  }

  #send(frame: object): void {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify(frame));
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  #set(state: State): void {
    if (state === this.state) return;
    this.state = state;
    this.#options.onState(state);
  }

  #after(name: string, ms: number, run: () => void): void {
    this.#clear(name);
    this.#timers.set(
      name,
      setTimeout(() => {
        this.#timers.delete(name);
        run();
      }, ms),
    );
  }

  #clear(name: string): void {
    clearTimeout(this.#timers.get(name));
    this.#timers.delete(name);
  }

  #clearAll(): void {
    for (const name of [...this.#timers.keys()]) this.#clear(name);
  }
}
