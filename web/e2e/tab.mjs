import { join } from "node:path";
import { atEnd, BASE_URL, eventually, must, SALE, SHOTS } from "./journey.mjs";
import { keep, Tape } from "./recording.mjs";

/** A device with a browser of its own: nothing that another one stores is known to it. */
export function device(browser, options = {}) {
  return browser.newContext({ locale: "en-GB", viewport: { width: 1280, height: 800 }, ...options });
}

/** Opens the page of a sale on a device of its own. */
export async function shopper(browser, { name = "the shopper", sale = SALE, ...rest } = {}) {
  const tab = await Tab.open(await device(browser), name, rest);
  await tab.visit(sale);
  return tab;
}

let shots = 0;

/** A tab of a shopper's browser. It listens to everything that the page has to say, and remembers what it has shown. */
export class Tab {
  tape = new Tape();
  seen = []; // each of the page's marks that differed from the one before
  requests = [];
  complaints = [];
  expected = []; // complaints that belong to the journey

  constructor(page, name, base) {
    this.page = page;
    this.name = name;
    this.base = base;
  }

  static async open(context, name, { base = BASE_URL } = {}) {
    const tab = new Tab(await context.newPage(), name, base.replace(/\/$/, ""));
    atEnd.tabs.push(tab);
    await tab.#listen();
    return tab;
  }

  async #listen() {
    const { page } = this;
    page.on("pageerror", (error) => this.complaints.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") this.complaints.push(message.text());
    });
    page.on("request", (request) => {
      this.requests.push(request.url());
      if (new URL(request.url()).origin !== this.base) this.complaints.push(`asked ${request.url()}`);
    });
    const records = [];
    page.on("websocket", (socket) => {
      const record = this.tape.open();
      records.push(record);
      socket.on("framereceived", ({ payload }) => record.hear(payload));
      socket.on("framesent", ({ payload }) => record.say(payload));
    });
    await page.exposeBinding("sluiceSaw", (_, marks) => this.seen.push(marks));
    await page.addInitScript(watchMarks);
    if (!process.env.RECORD) return;
    // What drives the browser is not told the code that a connection was closed with; the page is.
    const keys = [];
    await page.exposeBinding("sluiceSocket", (_, key, code, reason) => {
      if (code === undefined) keys.push(key);
      else records[keys.indexOf(key)]?.close(code, reason);
    });
    await page.addInitScript(watchSockets);
  }

  visit(sale, hash = "") {
    return this.page.goto(`${this.base}/s/${sale}${hash}`);
  }

  /** What the page is at: view, number, ahead, order, status. */
  read() {
    return this.page.evaluate(() => ({ ...document.querySelector("[data-view]")?.dataset }));
  }

  /** Waits until the page is at one of the views, with those marks, and returns what it is at. */
  async reach(views, marks = {}) {
    const wanted = [views].flat();
    const at = await eventually(
      `${this.name} is at ${wanted.join(" or ")} ${JSON.stringify(marks)}`,
      () => this.read(),
      (at) => wanted.includes(at.view) && Object.entries(marks).every(([mark, value]) => at[mark] === value),
    );
    await this.note([at.view, at.status].filter(Boolean).join("-"));
    return at;
  }

  /** Waits until the page says a text, where a selector says. */
  async says(text, selector = "body") {
    await eventually(
      `${this.name} says "${text}" in ${selector}`,
      () => this.page.locator(selector).allInnerTexts(),
      (texts) => texts.some((one) => one.includes(text)),
    );
    await this.note(text.toLowerCase().replace(/[^a-z]+/g, "-"));
  }

  /** Waits until something is there. */
  has(selector) {
    return eventually(`${this.name} has ${selector}`, () => this.page.locator(selector).count());
  }

  /** Waits until something is no longer there. */
  lacks(selector) {
    return eventually(
      `${this.name} lacks ${selector}`,
      () => this.page.locator(selector).count(),
      (n) => n === 0,
    );
  }

  press(name) {
    return this.page.getByRole("button", { name }).click();
  }

  /** Goes from one thing to the next with the keyboard until it is at a button, and presses that by a key. */
  async pressByKey(text, key) {
    for (let i = 0; i < 60; i++) {
      const at = await this.page.evaluate(() => document.activeElement?.closest("button")?.textContent ?? "");
      if (at.startsWith(text)) return this.page.keyboard.press(key);
      await this.page.keyboard.press("Tab");
    }
    must(false, `${this.name} cannot reach the button "${text}" with the Tab key`);
  }

  /** Waits for a frame of a type that has come since a moment, which is a number of frames of that type. */
  hears(type, after = 0) {
    return eventually(`${this.name} hears ${type}`, () => this.tape.heard(type)[after]);
  }

  /** Says what complaints belong to this journey. */
  expects(...patterns) {
    this.expected.push(...patterns);
  }

  /** Takes a picture, where every step is to be looked at: pictures take longer than all the rest. */
  async note(name) {
    if (process.env.PICTURES) await this.shoot(name);
  }

  shoot(name) {
    const number = String(++shots).padStart(2, "0");
    return this.page.screenshot({ path: join(SHOTS, `${number}-${this.name.replaceAll(" ", "-")}-${name}.png`) });
  }

  /** Keeps what was heard so far for the recording, with what the page shows now. */
  async keep() {
    keep(this.name, this.tape, await this.read());
  }

  /** What has to be so on every page at the end of every journey. */
  judge() {
    const left = this.complaints.filter((complaint) => !this.expected.some((pattern) => pattern.test(complaint)));
    must(left.length === 0, `the browser of ${this.name} complained: ${left.join("; ")}`);
    const least = new Map();
    for (const { number, ahead } of this.seen) {
      if (ahead === undefined) continue;
      const before = least.get(number) ?? Number.POSITIVE_INFINITY;
      must(Number(ahead) <= before, `${this.name} saw ${before} ahead of number ${number}, and ${ahead} later`);
      least.set(number, Number(ahead));
    }
  }
}

// The following two run in the page, before anything of the page does.

function watchMarks() {
  let before = "";
  new MutationObserver(() => {
    const marks = { ...document.querySelector("[data-view]")?.dataset };
    const now = JSON.stringify(marks);
    if (now !== before && marks.view) window.sluiceSaw(marks);
    before = now;
  }).observe(document, {
    subtree: true,
    childList: true,
    attributes: true,
    attributeFilter: ["data-view", "data-ahead"],
  });
}

function watchSockets() {
  window.WebSocket = class extends WebSocket {
    constructor(...options) {
      super(...options);
      const key = Math.random();
      window.sluiceSocket(key);
      this.addEventListener("close", ({ code, reason }) => window.sluiceSocket(key, code, reason));
    }
  };
}
