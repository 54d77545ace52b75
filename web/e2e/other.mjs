import WebSocket from "ws";
import { atEnd, BASE_URL, eventually, must, SALE } from "./journey.mjs";
import { keep, Tape } from "./recording.mjs";
import { guest } from "./shop.mjs";

/** A shopper without a browser: says what the journey wants to be said, and keeps what is answered. */
export class Other {
  tape = new Tape();
  seat;
  stays; // comes back when the connection is lost, as a page does
  closed; // how the last connection ended
  #socket;
  #read = 0; // frames that the journey has waited for

  constructor(token, { sale = SALE, base = BASE_URL, stays = false } = {}) {
    this.token = token;
    this.sale = sale;
    this.address = `${base.replace(/^http/, "ws").replace(/\/$/, "")}/ws/v1/sales/${sale}`;
    this.stays = stays;
    atEnd.stops.push(() => this.drop());
  }

  /** Joins as a new guest, unless there is a token, and waits for the welcome. */
  static async come({ token, ...options } = {}) {
    const other = new Other(token ?? (await guest()), options);
    other.connect();
    await other.hears("welcome");
    return other;
  }

  /** Opens a connection and says hello: with the seat that is held, and with whatever else the journey wants. */
  connect(hello = {}, options = {}) {
    this.closed = undefined;
    const record = this.tape.open();
    const socket = new WebSocket(this.address, "sluice.v1", options);
    this.#socket = socket;
    socket.on("open", () => {
      if (hello) this.hello(hello);
    });
    socket.on("message", (data) => {
      record.hear(data);
      const { type, seat } = this.tape.heard().at(-1);
      if (type === "welcome") this.seat = seat;
    });
    socket.on("close", (code, reason) => {
      this.closed = { code, reason: String(reason) };
      record.close(code, String(reason));
      if (this.stays && socket === this.#socket) setTimeout(() => this.connect(), 50);
    });
    socket.on("error", () => {}); // the end of the connection follows
    this.record = record;
  }

  say(frame) {
    const text = typeof frame === "string" ? frame : JSON.stringify(frame);
    this.#socket.send(text);
    if (typeof frame !== "string") this.record.say(text);
  }

  hello(more = {}) {
    this.say({ type: "hello", token: this.token, seat: this.seat, ...more });
  }

  grab(change = {}) {
    const id = crypto.randomUUID();
    this.say({ type: "grab", id, item: "black", qty: 1, ...change });
    return id;
  }

  /** Waits for a frame of a type that comes after all that was waited for before. */
  async hears(type, holds = () => true) {
    const frame = await eventually(`somebody hears ${type}`, () =>
      this.tape.heard().find((frame, i) => i >= this.#read && frame.type === type && holds(frame)),
    );
    this.#read = this.tape.heard().indexOf(frame) + 1;
    return frame;
  }

  /** Waits until the connection is closed, with that code. */
  async ends(code) {
    const closed = await eventually(`a connection is closed with ${code}`, () => this.closed);
    must(closed.code === code, `a connection was closed with ${closed.code} ${closed.reason}, and not with ${code}`);
  }

  /** Buys a unit in the turn, and returns the order. */
  async buys(change) {
    await this.hears("turn");
    this.grab(change);
    return (await this.hears("success")).order;
  }

  leave() {
    this.stays = false;
    this.say({ type: "leave" });
    return this.ends(1000);
  }

  /** Is gone, as a phone is in a tunnel. */
  drop() {
    this.stays = false;
    this.#socket?.terminate();
  }

  /** Keeps what was heard so far for the recording, with what a page would show by then. */
  keep(who, view, marks = {}) {
    keep(who, this.tape, { view, ...marks });
  }
}
