// What all journeys share: how one begins and ends, how it waits, and how it asks for what a browser cannot do. A journey
// is a script in journeys/; it ends with 0 and a sentence, or with 1 and a sentence that says what was not so.
//
//   BASE_URL=http://127.0.0.1:8080 SALE=e2e-1 ADMIN=token SHOTS=/tmp/shots node e2e/journeys/cancel.mjs
//
// SALE    the id that the journey gives its sale; where it has several, they begin with it
// ADMIN   the token of the admin API
// WAIT    how long to wait for each thing, in seconds (default 60); only what hangs comes near
// RECORD  a folder to write a recording of what the pages heard into; see recording.mjs
import { mkdirSync } from "node:fs";
import { basename } from "node:path";
import { createInterface } from "node:readline";
import { openBrowser } from "./browser.mjs";
import { write } from "./recording.mjs";

const settings = ["BASE_URL", "SALE", "SHOTS"];
if (settings.some((name) => !process.env[name])) {
  console.error(`${settings.join(", ")} must be set`);
  process.exit(2);
}
export const { BASE_URL, SALE, SHOTS } = process.env;
mkdirSync(SHOTS, { recursive: true });

const WAIT = Number(process.env.WAIT ?? 60);
const OFTEN_MS = 40;

class Failure extends Error {}

export function must(holds, sentence) {
  if (!holds) throw new Failure(sentence);
}

/** Looks again and again until what is seen holds, and returns it. `what` ends the sentence "it never came true: …". */
export async function eventually(what, look, holds = Boolean) {
  const end = Date.now() + WAIT * 1000;
  for (;;) {
    const seen = await look();
    if (holds(seen)) return seen;
    if (Date.now() > end) throw new Failure(`it never came true within ${WAIT} s: ${what}; last seen: ${show(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, OFTEN_MS));
  }
}

const show = (seen) => JSON.stringify(seen)?.slice(0, 300) ?? String(seen);

let answers;

/** Asks whoever started this journey for what it cannot do itself, and waits until that is done. */
export async function please(what) {
  answers ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  console.log(`please ${what}`);
  const { done } = await answers.next();
  must(!done, `nobody is there to ${what}`);
}

/** What is to be looked at, or stopped, when a journey ends. */
export const atEnd = { tabs: [], stops: [] };

/** Runs a journey, which is given a browser unless it wants none, and returns the sentence to end with. */
export async function journey(run, { browser: wanted = true } = {}) {
  const browser = wanted ? await openBrowser() : undefined;
  try {
    const sentence = await run(browser);
    for (const tab of atEnd.tabs) tab.judge();
    write(basename(process.argv[1], ".mjs"));
    console.log(sentence);
  } catch (error) {
    for (const tab of atEnd.tabs) await tab.shoot("failed").catch(() => {});
    console.error(error instanceof Failure ? error.message : error);
    process.exitCode = 1;
  }
  for (const stop of atEnd.stops) stop();
  await browser?.close();
  process.exit(); // whatever still waits for something
}
