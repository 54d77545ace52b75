// What the stub server plays: for each scene the sale, and the frames that follow the welcome. Every type of frame of the
// protocol occurs, and every view of the page has at least one scene. The frames are real: they are moments of recordings of
// real servers (see recorded.mjs), as if they had been recorded just now. Written by hand is only what no recording can
// have, and each time it is said why.
import { ending, frame, is, moment } from "./recorded.mjs";

const minute = 60_000;
const day = 24 * 60 * minute;

export function saleOf(id, now, change = {}) {
  return {
    id,
    title: { en: "Phone X, 1,000 units", zh: "Phone X 限量 1000 台" },
    items: [
      { id: "black", title: { en: "Midnight black", zh: "午夜黑" }, price: 299900, stock: 412, total: 600 },
      { id: "white", title: { en: "Pearl white", zh: "珍珠白" }, price: 319900, stock: 0, total: 400 },
    ],
    currency: "CNY",
    opens_at: now - minute,
    closes_at: now + 60 * minute,
    state: "open",
    stock: "available",
    waiting: 18_240,
    rate: 48,
    limit: 1,
    line: { order: "lottery" },
    hold: 15 * minute,
    ...change,
  };
}

// By hand: a crowd of a size that is not made for a picture. Its figures are as wide as any.
const crowd = (now, change = {}) => [
  { type: "welcome", at: now, sale: saleOf("crowd", now), user: "guest-1", seat: "seat", epoch: 1, node: "stage" },
  {
    type: "queued",
    number: 5_210,
    ahead: 1_872,
    total: 18_240,
    rate: 12,
    recalled: 3,
    eta_ms: 2.6 * minute,
    eta_max_ms: 4.2 * minute,
    stock: "available",
    chance: "possible",
    at: now,
    ...change,
  },
];
const huge = { number: 140_802, ahead: 140_219, total: 301_455, recalled: 0, chance: "unlikely" };

/** What is asked for again is asked for after a minute, so that the picture can be taken in between. */
const inAMinute = (frame) => {
  const wait = frame.type === "moving" ? "retry_in_ms" : "retry_after_ms";
  return wait in frame ? { ...frame, [wait]: minute } : frame;
};

/** Makes a change to frames of a type. */
const to = (type, change) => (frame) => (frame.type === type ? { ...frame, ...change(frame) } : frame);

const rest = (who, wanted, change) => moment("record-rest", who, wanted, change);
const several = "several items, and too much";
const queued = moment("buy", "first tab", is("queued"));
const turn = rest("in the turn when Redis is away", is("turn"));

/** A grab that is answered so, in a turn. */
const grab = (frames, ...answers) => ({
  frames,
  press: [".buy"],
  answer: (now) => answers.flatMap((answer) => answer(now)),
});
const answer = (who, wanted, change) => frame("record-rest", who, wanted, change);
const refused = (who) => ({ close: ending("record-rest", who) });
const byHand = (code, reason) => ({ close: { code, reason } });
const lost = byHand(1013, "too slow"); // of an overloaded server
const leave = ".links > .quiet >> nth=-1";

/**
 * Each scene: frames = what is told after the hello, press = what is pressed then, answer = frames to a grab, close = how
 * the connection ends; once = who comes back meets silence; offline = without a network.
 */
export const scenes = {
  connecting: { silent: true },
  unreached: lost,
  crowded: { frames: answer("too many questions", is("limited"), inAMinute) },
  scheduled: { frames: rest("before the lobby", is("none")) },
  lobby: { frames: moment("lottery", "the shopper", is("lobby")) },
  "lobby-fifo": { frames: rest("in a lobby in order of arrival", is("lobby")) },
  "lobby-priority": {
    frames: moment(
      "lottery",
      "the shopper",
      is("lobby"),
      to("welcome", ({ sale }) => ({ sale: { ...sale, access: { code: true, priority: true } } })),
    ),
  },
  "lobby-off": { frames: rest("in a lobby without a line", is("lobby")) },
  // By hand, as the moment of a draw is too short.
  drawing: {
    frames: moment(
      "lottery",
      "the shopper",
      is("lobby"),
      to("lobby", ({ at }) => ({ opens_at: at, drawing: true, entries: 18_240 })),
    ),
  },
  queued: { frames: queued },
  "queued-drawn": { frames: moment("lottery", "the shopper", is("queued")) },
  "queued-next": { frames: rest("a grab before the turn", is("queued")) },
  "queued-possible": { frames: rest("with more people ahead than units", is("queued")) },
  "queued-unlikely": { frames: rest("far behind", is("queued")) },
  "queued-crowd": { frames: (now) => crowd(now) },
  "queued-huge": { frames: (now) => crowd(now, { ...huge, eta_ms: undefined, eta_max_ms: undefined }) },
  "queued-held": { frames: moment("soldout", "who waits behind", is("queued")) },
  "queued-paused": { frames: moment("paused", "who waits", is("paused")) },
  "queued-recovering": { frames: rest("in the line when Redis loses it", is("paused")) },
  "queued-resumed": { frames: moment("paused", "who waits", is("queued", { reason: "paused" })) },
  stale: {
    frames: rest(
      "back after Redis has lost the line",
      (frame, i, all) => i > 0 && is("stale")(all[0]) && frame.type === "queued",
    ),
  },
  reconnecting: { frames: queued, ...lost, once: true },
  offline: { frames: queued, ...lost, once: true, offline: true },
  moving: {
    frames: moment("restart", "the shopper", is("moving"), inAMinute),
    ...byHand(1012, "restarting"),
    once: true,
  },
  leaving: { frames: queued, press: [leave] },
  left: { frames: queued, press: [leave, "dialog[open] .second"] },
  sharing: { frames: queued, press: [".links > .quiet >> nth=0"] },
  called: { frames: queued, press: [".call input"] },
  turn: { frames: turn },
  "turn-urgent": {
    frames: moment(
      "cancel",
      "the shopper",
      is("turn"),
      to("turn", ({ at }) => ({ until: at + 8_000 })),
    ),
  },
  "turn-many": { frames: rest(several, is("turn")) },
  "turn-off": { frames: rest("without a line", is("turn")) },
  // By hand: an item without a price, in a currency that the recordings do not have.
  "turn-free": {
    frames: moment(
      "cancel",
      "the shopper",
      is("turn"),
      to("welcome", ({ sale }) => ({
        sale: { ...sale, currency: "USD", items: [{ ...sale.items[0], price: undefined }] },
      })),
    ),
  },
  "turn-paused": { frames: moment("paused", "who is called", is("paused")) },
  grabbing: grab(turn),
  "grabbing-limited": grab(
    turn,
    answer("too many questions", (frame) => is("limited")(frame) && frame.id, inAMinute),
  ),
  "grabbing-busy": grab(turn, answer("in the turn when Redis is away", is("error"), inAMinute)),
  "grab-item-held": grab(rest(several, is("turn")), answer(several, is("sold_out", { stock: "held" }))),
  "grab-item-gone": grab(rest(several, is("turn")), answer(several, is("sold_out", { stock: "gone" }))),
  "grab-fewer": grab(rest(several, is("turn")), answer(several, is("sold_out", { stock: "available" }))),
  "grab-no-turn": grab(turn, answer("a turn that ran out", is("no_turn")), answer("a turn that ran out", is("missed"))),
  "grab-not-open": grab(turn, answer("without a line, in a pause", is("not_open"))),
  "grab-error": grab(turn, answer(several, is("error"))),
  success: grab(turn, frame("lottery", "the shopper", is("success"))),
  already: grab(rest(several, is("turn")), answer(several, is("already"))),
  confirmed: { frames: moment("lottery", "the shopper", is("order", { status: "confirmed" })) },
  // By hand, in the one field that says it: no recording has a payment provider.
  "confirmed-elsewhere": {
    frames: moment(
      "lottery",
      "the shopper",
      is("order", { status: "confirmed" }),
      to("welcome", () => ({ payment: "provider" })),
    ),
  },
  "confirmed-free": { frames: moment("buy", "first tab", is("order", { status: "confirmed" })) },
  cancelling: {
    frames: moment("lottery", "the shopper", is("order", { status: "confirmed" })),
    press: [".view .row > .quiet"],
  },
  paid: { frames: rest(several, is("order", { status: "paid" })) },
  cancelled: { frames: moment("cancel", "the shopper", is("order", { status: "cancelled" })) },
  expired: { frames: rest("an order that is not paid in time", is("order", { status: "expired" })) },
  rejected: { frames: rest("an order that is nowhere, as the place is", is("order", { status: "rejected" })) },
  "turn-after-rejected": { frames: rest("an order that is nowhere", is("order", { status: "rejected" })) },
  held: { frames: moment("soldout", "the shopper", is("sold_out", { stock: "held" })) },
  gone: { frames: moment("soldout", "who waits behind", is("sold_out", { stock: "gone" })) },
  missed: { frames: moment("missed", "the shopper", is("missed")) },
  absent: { frames: rest("a place that is left while nobody was there", is("missed")) },
  paused: { frames: rest("coming into a pause", is("paused")) },
  closed: { frames: moment("paused", "who waits", is("closed")) },
  none: { frames: moment("share", "at home", is("none")) },
  "refused-token": refused("a bad token"),
  "refused-message": refused("a bad message"),
  "refused-origin": refused("a page of another origin"),
  "refused-tabs": refused("too many devices"),
  "no-sale": refused("no such sale"),
  // By hand: what the recordings do not have.
  "refused-code": byHand(4403, "code_needed"),
  "refused-code-used": byHand(4403, "code_used"),
  "refused-challenge": byHand(4403, "challenge_needed"),
};

/** Scenes that look the same, and why. */
export const alike = [];

/** What the list of sales shows. */
export function listOf(now) {
  return [
    saleOf("queued", now),
    saleOf("lobby", now, {
      state: "lobby",
      opens_at: now + 4 * minute,
      title: { en: "Concert, row by row", zh: "演唱会门票" },
      waiting: 921,
    }),
    saleOf("scheduled", now, { state: "scheduled", opens_at: now + 3.2 * day, waiting: 0, title: "Trail shoes 红" }),
    saleOf("held", now, { stock: "held" }),
    saleOf("paused", now, { state: "paused" }),
    saleOf("closed", now, { state: "closed", stock: "gone", waiting: 0 }),
  ];
}
