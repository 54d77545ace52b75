// What the stub server plays: for each scene the sale, and the frames that follow the welcome. Every type of frame of the
// protocol occurs, and every view of the page has at least one scene.

const minute = 60_000;
const day = 24 * 60 * minute;
const orderId = "019b0c5e-7d1a-7c3f-9a52-4f0e8d2b6c11";

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

const queued = (now, change = {}) => ({
  type: "queued",
  number: 5_210,
  ahead: 1_872,
  total: 18_240,
  rate: 12,
  recalled: 0,
  eta_ms: 2.6 * minute,
  eta_max_ms: 4.2 * minute,
  stock: "available",
  chance: "possible",
  at: now,
  ...change,
});

const turn = (now, change = {}) => ({
  type: "turn",
  until: now + 47_000,
  limit: 1,
  items: [
    { id: "black", stock: 412 },
    { id: "white", stock: 0 },
  ],
  at: now,
  ...change,
});

const order = (now, status, change = {}) => ({
  id: orderId,
  sale: "phone-x",
  item: "black",
  qty: 1,
  status,
  created_at: now - 2_000,
  pay_by: now + 14 * minute + 12_000,
  ...change,
});

const one = (price) => [{ id: "main", title: { en: "Phone X", zh: "Phone X" }, price, stock: 90, total: 100 }];
const soon = { state: "lobby" };

/** Each scene: change = fields of the sale, welcome = fields of the welcome, frames, answer = frames to a grab, close. */
export const scenes = {
  connecting: { silent: true },
  unreached: { close: 1013 },
  crowded: {
    unwelcome: (now) => [{ type: "limited", retry_after_ms: 60_000, limit: 20, remaining: 0, reset: now, at: now }],
  },
  scheduled: {
    change: (now) => ({ state: "scheduled", opens_at: now + 3.2 * day, lobby_at: now + 3.2 * day - 30 * minute }),
    frames: (now) => [{ type: "none", at: now }],
  },
  lobby: {
    change: (now) => ({ ...soon, opens_at: now + 4 * minute + 12_000 }),
    frames: (now) => [
      { type: "lobby", entries: 18_240, opens_at: now + 4 * minute + 12_000, order: "lottery", at: now },
    ],
  },
  "lobby-fifo": {
    change: (now) => ({ ...soon, opens_at: now + 42_000, line: { order: "fifo" } }),
    welcome: { number: 314 },
    frames: (now) => [{ type: "lobby", entries: 1_022, opens_at: now + 42_000, order: "fifo", at: now }],
  },
  "lobby-off": {
    change: (now) => ({ ...soon, opens_at: now + 95 * minute, line: { order: "off" } }),
    frames: (now) => [{ type: "lobby", entries: 0, opens_at: now + 95 * minute, order: "off", at: now }],
  },
  queued: { frames: (now) => [queued(now)] },
  "queued-likely": {
    frames: (now) => [
      queued(now, { ahead: 37, number: 412, eta_ms: 3_000, eta_max_ms: 9_000, chance: "likely", recalled: 3 }),
    ],
  },
  "queued-unlikely": {
    frames: (now) => [
      queued(now, {
        ahead: 140_219,
        number: 140_802,
        total: 301_455,
        eta_ms: undefined,
        eta_max_ms: undefined,
        chance: "unlikely",
      }),
    ],
  },
  "queued-next": {
    frames: (now) => [queued(now, { ahead: 0, number: 5_210, eta_ms: 1, eta_max_ms: 900, chance: "likely" })],
  },
  "queued-held": { frames: (now) => [queued(now), { type: "sold_out", stock: "held", at: now }] },
  "queued-paused": { frames: (now) => [queued(now), { type: "paused", why: "operator", at: now }] },
  "queued-recovering": { change: () => ({ state: "recovering" }), frames: (now) => [queued(now)] },
  "queued-resumed": {
    frames: (now) => [queued(now), { type: "paused", why: "operator", at: now }, { type: "resumed", at: now }],
  },
  stale: { frames: (now) => [{ type: "stale", at: now }, queued(now)] },
  reconnecting: { frames: (now) => [queued(now)], close: 1013, once: true },
  offline: { frames: (now) => [queued(now)], close: 1013, once: true, offline: true },
  moving: { frames: (now) => [queued(now), { type: "moving", retry_in_ms: 60_000, at: now }], close: 1012, once: true },
  turn: { frames: (now) => [turn(now)] },
  "turn-many": {
    change: () => ({ limit: 5 }),
    frames: (now) => [
      turn(now, {
        limit: 5,
        items: [
          { id: "black", stock: 412 },
          { id: "white", stock: 31 },
        ],
      }),
    ],
  },
  "turn-one": {
    change: () => ({ items: one(129900), currency: "USD" }),
    frames: (now) => [turn(now, { items: [{ id: "main", stock: 90 }], until: now + 8_000 })],
  },
  "turn-free": {
    change: () => ({ items: one(undefined), line: { order: "off" } }),
    frames: (now) => [turn(now, { items: [{ id: "main", stock: 90 }], until: now + 60 * minute })],
  },
  "turn-paused": { frames: (now) => [turn(now), { type: "paused", why: "operator", at: now }] },
  grabbing: { frames: (now) => [turn(now)], grab: true, answer: () => [] },
  "grabbing-limited": {
    frames: (now) => [turn(now)],
    grab: true,
    answer: (now) => [{ type: "limited", retry_after_ms: 60_000, limit: 20, remaining: 0, reset: now, at: now }],
  },
  "grabbing-busy": {
    frames: (now) => [turn(now)],
    grab: true,
    answer: (now) => [{ type: "error", code: "unavailable", msg: "…", retry_after_ms: 60_000, at: now }],
  },
  "grab-item-gone": {
    frames: (now) => [
      turn(now, {
        items: [
          { id: "black", stock: 2 },
          { id: "white", stock: 31 },
        ],
      }),
    ],
    grab: true,
    answer: (now) => [{ type: "sold_out", item: "black", stock: "gone", at: now }],
  },
  "grab-fewer": {
    change: () => ({ limit: 5 }),
    frames: (now) => [turn(now, { limit: 5 })],
    grab: true,
    answer: (now) => [{ type: "sold_out", item: "black", stock: "available", left: 1, at: now }],
  },
  "grab-no-turn": {
    frames: (now) => [turn(now)],
    grab: true,
    answer: (now) => [
      { type: "no_turn", state: "open", at: now },
      { type: "missed", why: "expired", at: now },
    ],
  },
  "grab-not-open": {
    frames: (now) => [turn(now)],
    grab: true,
    answer: (now) => [{ type: "not_open", state: "paused", at: now }],
  },
  "grab-error": {
    frames: (now) => [turn(now)],
    grab: true,
    answer: (now) => [{ type: "error", code: "invalid", msg: "…", at: now }],
  },
  success: {
    frames: (now) => [turn(now)],
    grab: true,
    answer: (now) => [{ type: "success", order: order(now, "reserved"), at: now }],
  },
  confirmed: {
    frames: (now) => [turn(now)],
    grab: true,
    answer: (now) => [
      { type: "success", order: order(now, "reserved"), at: now },
      { type: "order", order: order(now, "confirmed"), at: now },
    ],
  },
  "confirmed-free": {
    frames: (now) => [{ type: "order", order: order(now, "confirmed", { pay_by: undefined }), at: now }],
  },
  paid: { frames: (now) => [{ type: "order", order: order(now, "paid", { qty: 2 }), at: now }] },
  already: {
    frames: (now) => [turn(now)],
    grab: true,
    answer: (now) => [{ type: "already", order: order(now, "reserved"), at: now }],
  },
  cancelled: { frames: (now) => [{ type: "order", order: order(now, "cancelled"), at: now }] },
  expired: { frames: (now) => [{ type: "order", order: order(now, "expired"), at: now }] },
  rejected: { frames: (now) => [{ type: "order", order: order(now, "rejected"), at: now }] },
  held: { frames: (now) => [turn(now), { type: "sold_out", stock: "held", at: now }] },
  gone: { frames: (now) => [queued(now), { type: "sold_out", stock: "gone", at: now }] },
  missed: { frames: (now) => [{ type: "missed", why: "expired", at: now }] },
  absent: { frames: (now) => [{ type: "missed", why: "absent", at: now }] },
  paused: {
    change: () => ({ state: "paused", line: { order: "off" } }),
    frames: (now) => [{ type: "paused", why: "operator", at: now }],
  },
  closed: { change: () => ({ state: "closed" }), frames: (now) => [{ type: "closed", why: "ended", at: now }] },
  none: { frames: (now) => [{ type: "none", at: now }] },
  left: { frames: (now) => [queued(now)], leave: true },
  leaving: { frames: (now) => [queued(now)], ask: true },
  "refused-token": { close: 4401, reason: "the token is not valid" },
  "refused-denied": { close: 4403, reason: "denied" },
  "refused-code": { close: 4403, reason: "code_needed" },
  "refused-code-used": { close: 4403, reason: "code_used" },
  "refused-tabs": { close: 4409, reason: "too many connections for this seat" },
  "no-sale": { close: 4404, reason: "no such sale" },
};

/** What the list of sales shows. */
export function listOf(now) {
  return [
    saleOf("queued", now),
    saleOf("lobby", now, {
      ...soon,
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
