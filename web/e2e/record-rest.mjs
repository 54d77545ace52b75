// The rest of the protocol: what a page in a journey does not meet, or not by what a shopper can do. Sockets without a
// browser ask for it, of a real server. Runs like a journey; see journey.mjs.
//
// LIMITED   a server of the same sales that takes two joins and grabs of one user in five seconds
// SECRET    the secret of the servers, with which they sign the ids of orders
//
// It asks for three deeds: `flush` loses everything in Redis, `cut` and `mend` take Redis away and give it back.
import { createHmac, hkdfSync } from "node:crypto";
import { journey, please, SALE } from "./journey.mjs";
import { Other } from "./other.mjs";
import { apply, items, leaveSeat, operate, settle } from "./shop.mjs";

const { LIMITED, SECRET } = process.env;

/** Makes a sale for one part of this script; returns its id. */
async function sale(part, change) {
  const id = `${SALE}-${part}`;
  await apply({ id, ...change });
  return id;
}

/**
 * The id of an order that a server made for somebody some seconds ago and that nobody knows any more: a UUIDv7 whose last
 * six bytes say for whom it was made.
 */
function lostOrder({ token, sale }) {
  const user = JSON.parse(Buffer.from(token.split(".")[1], "base64url")).sub;
  const id = Buffer.from(`${(Date.now() - 20_000).toString(16).padStart(12, "0")}70008000`, "hex");
  const key = hkdfSync("sha256", SECRET, "", "sluice order v1", 32);
  const signed = createHmac("sha256", Buffer.from(key)).update(id).update(`${sale}\0${user}`).digest().subarray(0, 6);
  return Buffer.concat([id, signed])
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const parts = {
  async "before the lobby"(who) {
    const early = await Other.come({
      sale: await sale("early", { opens_at: "+77h", closes_at: "+80h", lobby: "30m" }),
    });
    await early.hears("none");
    early.keep(who, "scheduled");
  },

  async "in a lobby in order of arrival"(who) {
    const one = await Other.come({ sale: await sale("fifo", { opens_at: "+45s" }) });
    await one.hears("lobby");
    one.keep(who, "lobby", { number: "1" });
  },

  async "in a lobby without a line"(who) {
    const one = await Other.come({ sale: await sale("lobby", { opens_at: "+95m", line: { order: "off" } }) });
    await one.hears("lobby");
    one.keep(who, "lobby");
  },

  async "without a line"(who) {
    const id = await sale("off", { line: { order: "off" } });
    const one = await Other.come({ sale: id });
    await one.hears("turn");
    one.keep(who, "turn");
    await operate("pause", id);
    await one.hears("paused");
    one.grab();
    await one.hears("not_open");
    one.keep("without a line, in a pause", "turn");
    const late = await Other.come({ sale: id });
    await late.hears("paused");
    late.keep("coming into a pause", "paused");
  },

  async "several items, and too much"(who) {
    const id = await sale("many", { items: items(3, 31), limit: 5, line: { active: 2 } });
    const [one, other] = [await Other.come({ sale: id }), await Other.come({ sale: id })];
    await one.hears("turn");
    one.grab({ qty: 9 });
    await one.hears("error");
    one.grab({ qty: 5 });
    await one.hears("sold_out", ({ left }) => left === 3);
    const first = await other.buys({ qty: 3 });
    one.grab();
    await one.hears("sold_out", ({ stock }) => stock === "held");
    await settle(other.token, first.id, "pay");
    one.grab();
    await one.hears("sold_out", ({ stock }) => stock === "gone");
    one.grab({ item: "white", qty: 2 });
    const { order } = await one.hears("success");
    one.grab({ item: "white" });
    await one.hears("already");
    await settle(one.token, order.id, "pay");
    await one.hears("order", ({ order }) => order.status === "paid");
    one.keep(who, "order", { number: "1", order: order.id, status: "paid" });
  },

  async "an order that is not paid in time"(who) {
    const one = await Other.come({ sale: await sale("unpaid", { items: items(1, 0), hold: "1s" }) });
    const { id } = await one.buys();
    await one.hears("order", ({ order }) => order.status === "expired");
    one.keep(who, "order", { number: "1", order: id, status: "expired" });
  },

  async "an order that is nowhere"(who) {
    const one = await Other.come({ sale: await sale("nowhere") });
    await one.hears("turn");
    one.drop();
    one.connect({ order: lostOrder(one) });
    await one.hears("order");
    one.keep(who, "turn", { number: "1" }); // the place counts, and the order is told beside it
  },

  async "an order that is nowhere, as the place is"(who) {
    const id = await sale("gone");
    const one = await Other.come({ sale: id });
    await one.hears("turn");
    one.drop();
    await leaveSeat(one.token, id);
    const order = lostOrder(one);
    one.connect({ order });
    await one.hears("order");
    one.keep(who, "order", { order, status: "rejected" });
  },

  async "a place that is left on another device"(who) {
    const id = await sale("devices");
    const one = await Other.come({ sale: id });
    const other = await Other.come({ sale: id, token: one.token });
    await other.leave();
    await one.hears("none");
    one.keep(who, "none");
  },

  async "a place that is left while nobody was there"(who) {
    const id = await sale("absent");
    const one = await Other.come({ sale: id });
    await one.hears("turn");
    one.drop();
    await leaveSeat(one.token, id);
    one.connect();
    await one.hears("missed");
    one.keep(who, "missed");
  },

  async "a grab before the turn"(who) {
    const id = await sale("hasty");
    await (await Other.come({ sale: id })).hears("turn");
    const one = await Other.come({ sale: id });
    await one.hears("queued");
    one.grab();
    await one.hears("no_turn");
    one.keep(who, "queued", { number: "2" });
  },

  async "with more people ahead than units"(who) {
    const id = await sale("few", { items: items(1, 0) });
    const line = [];
    while (line.length < 8) line.push(await Other.come({ sale: id }));
    for (const [place, name] of [
      [2, who],
      [7, "far behind"],
    ]) {
      await line[place].hears("queued");
      line[place].keep(name, "queued", { number: String(place + 1) });
    }
  },

  async "a turn that ran out"(who) {
    const one = await Other.come({ sale: await sale("late", { line: { turn: "1s" } }) });
    await one.hears("missed");
    one.grab();
    await one.hears("no_turn");
    one.keep(who, "missed", { number: "1" });
  },

  async "too many questions"(who) {
    const one = await Other.come({ sale: await sale("limited"), base: LIMITED });
    await one.hears("turn");
    one.hello();
    await one.hears("welcome");
    await one.hears("turn");
    one.hello();
    await one.hears("limited");
    one.grab();
    await one.hears("limited");
    one.keep(who, "grabbing", { number: "1" });
  },

  async refusals() {
    const id = await sale("refusals");
    const refused = async (who, code, one, hello, options) => {
      one.connect(hello, options);
      await one.ends(code);
      one.keep(who, "refused");
    };
    const crowd = [await Other.come({ sale: id })];
    const { token } = crowd[0];
    await refused("a bad token", 4401, new Other("a.b.c", { sale: id }));
    await refused("no such sale", 4404, new Other(token, { sale: `${SALE}-none` }));
    const origin = "http://elsewhere.test";
    await refused("a page of another origin", 4403, new Other(token, { sale: id }), {}, { origin });
    while (crowd.length < 8) crowd.push(await Other.come({ sale: id, token }));
    await refused("too many devices", 4409, new Other(token, { sale: id }));
    crowd[0].say("?");
    await crowd[0].ends(4400);
    crowd[0].keep("a bad message", "refused");
  },
};

/** What is about everybody at once: it comes first, while there is one sale that has to be put right. */
async function losses() {
  const id = await sale("lost");
  const [one, other, away] = [
    await Other.come({ sale: id }),
    await Other.come({ sale: id }),
    await Other.come({ sale: id }),
  ];
  await one.hears("turn");
  await other.hears("queued");
  await away.hears("queued");
  away.drop();
  await please("flush");
  await other.hears("paused");
  await other.hears("resumed");
  await other.hears("queued");
  other.keep("in the line when Redis loses it", "queued", { number: "2" });
  away.connect();
  await away.hears("stale");
  await away.hears("queued");
  away.keep("back after Redis has lost the line", "queued", { number: "3" });

  await one.hears("turn");
  await please("cut");
  const request = one.grab();
  await one.hears("error", ({ code }) => code === "unavailable");
  await please("mend");
  one.grab({ id: request });
  const { order } = await one.hears("success");
  await one.hears("order", ({ order }) => order.status === "confirmed");
  one.keep("in the turn when Redis is away", "order", { number: "1", order: order.id, status: "confirmed" });
}

journey(
  async () => {
    await losses();
    await Promise.all(Object.entries(parts).map(([who, part]) => part(who)));
    return `${Object.keys(parts).length + 1} parts`;
  },
  { browser: false },
);
