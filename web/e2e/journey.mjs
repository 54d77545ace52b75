// One shopper's way through a sale on a real server: joins as a guest (or with TOKEN), waits, reloads in the line and keeps
// the number, opens a second tab that shows the same number, gets the turn, buys, and sees the confirmed order in both tabs
// and after another reload. Ends with 0, or with 1 and a sentence that says what was not so.
//
//   BASE_URL=http://127.0.0.1:8080 SALE=phone-x SHOTS=/tmp/journey node e2e/journey.mjs
//
// TOKEN   a user token of the shop, handed over in the address as the shop would; without it, guests must be allowed
// WAIT    how long to wait for each state, in seconds (default 90)
// The sale must keep the shopper in the line for a few seconds, or the line cannot be looked at.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";

const { BASE_URL, SALE, SHOTS, TOKEN, WAIT = "90" } = process.env;
if (!BASE_URL || !SALE || !SHOTS) {
  console.error("BASE_URL, SALE and SHOTS must be set");
  process.exit(2);
}
mkdirSync(SHOTS, { recursive: true });
const timeout = Number(WAIT) * 1000;

class Failure extends Error {}
function must(holds, sentence) {
  if (!holds) throw new Failure(sentence);
}

const complaints = [];
let shots = 0;

/** Listens to what the browser has to say about a page: errors, and what the page's own policy blocked. */
function watch(page, name) {
  page.on("pageerror", (error) => complaints.push(`${name}: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`${name}: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(BASE_URL).origin) complaints.push(`${name} asked ${request.url()}`);
  });
}

/** What a page is at: view, number, ahead, order, status. */
const read = (page) => page.evaluate(() => ({ ...document.querySelector("[data-view]")?.dataset }));

/** Waits until the page is at one of the views, and returns what it is at. */
async function reach(page, views, what) {
  const wanted = new Set(views);
  const end = Date.now() + timeout;
  let at = {};
  while (Date.now() < end) {
    at = await read(page);
    if (wanted.has(at.view)) return at;
    await page.waitForTimeout(25);
  }
  throw new Failure(`${what}: waited ${WAIT} s, the page is at "${at.view}" (${await page.title()})`);
}

async function shoot(page, name) {
  await page.screenshot({ path: join(SHOTS, `${String(++shots).padStart(2, "0")}-${name}.png`) });
}

async function journey(context) {
  const first = await context.newPage();
  watch(first, "first tab");
  const address = `${BASE_URL.replace(/\/$/, "")}/s/${SALE}`;
  await first.goto(address + (TOKEN ? `#token=${TOKEN}` : ""));
  must(!first.url().includes("token"), "the token is still in the address of the page");

  const before = await reach(first, ["scheduled", "lobby", "queued", "turn"], "joining");
  await shoot(first, before.view);
  const joined = await reach(first, ["queued", "turn"], "being given a number");
  must(joined.view === "queued", "the turn came before the line could be looked at: the sale needs a slower line");
  const { number } = joined;
  must(number > 0, "the page is in line, but shows no number");
  await shoot(first, "queued");

  await first.reload();
  const reloaded = await reach(first, ["queued", "turn"], "reloading in the line");
  await shoot(first, "reloaded");
  must(reloaded.number === number, `the number was ${number}, and is ${reloaded.number} after a reload`);
  must(
    reloaded.view === "turn" || Number(reloaded.ahead) <= Number(joined.ahead),
    `${joined.ahead} were ahead, and ${reloaded.ahead} are after a reload`,
  );

  const second = await context.newPage();
  watch(second, "second tab");
  await second.goto(address);
  const other = await reach(second, ["queued", "turn"], "opening a second tab");
  await shoot(second, "second-tab");
  must(other.number === number, `the first tab has number ${number}, the second ${other.number}`);

  const turn = await reach(first, ["turn"], "waiting for the turn");
  must(turn.number === number, `the number was ${number}, and is ${turn.number} in the turn`);
  await shoot(first, "turn");
  await reach(second, ["turn"], "the turn in the second tab");

  await first.bringToFront();
  await first.locator("button.buy").click();
  const bought = await reach(first, ["order"], "buying");
  await shoot(first, bought.status);
  must(
    ["reserved", "confirmed"].includes(bought.status),
    `the order is ${bought.status} right after it was made, and should be reserved or confirmed`,
  );
  const end = Date.now() + timeout;
  let order = bought;
  while (order.status === "reserved" && Date.now() < end) {
    await first.waitForTimeout(25);
    order = await read(first);
  }
  must(order.status === "confirmed", `the order was not confirmed within ${WAIT} s, it is ${order.status}`);
  await shoot(first, "confirmed");

  const elsewhere = await reach(second, ["order"], "the order in the second tab");
  must(elsewhere.order === order.order, `the second tab shows order ${elsewhere.order}, the first ${order.order}`);
  await shoot(second, "order-in-second-tab");

  await first.reload();
  const kept = await reach(first, ["order"], "the order after a reload");
  must(kept.order === order.order, `the order was ${order.order}, and is ${kept.order} after a reload`);
  await shoot(first, "order-after-reload");

  must(complaints.length === 0, `the browser complained: ${complaints.join("; ")}`);
  return `number ${number} kept through a reload and in a second tab; order ${order.order} ${kept.status}`;
}

const browser = await openBrowser();
try {
  const context = await browser.newContext({ locale: "en-GB", viewport: { width: 1280, height: 800 } });
  console.log(await journey(context));
} catch (error) {
  const pages = browser.contexts().flatMap((context) => context.pages());
  for (const page of pages) await shoot(page, "failed").catch(() => {});
  console.error(error instanceof Failure ? error.message : error);
  process.exitCode = 1;
} finally {
  await browser.close();
}
