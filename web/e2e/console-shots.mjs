// Takes pictures of the operator's console, in both languages, wide and narrow, light and dark, into $SHOTS (default
// /tmp/console-shots), with a contact sheet for each kind. Fails on anything the browser complains of, on what axe finds, on
// any request to another host, and on what does not fit into windows from 320 to 3840 px. Names as arguments take only
// those pictures; KINDS=en-wide-light,… only those kinds.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { openConsoleStage } from "./console-stage.mjs";
import { contactSheet } from "./contact-sheet.mjs";

const folder = process.env.SHOTS || "/tmp/console-shots";
const only = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
mkdirSync(folder, { recursive: true });

const click = (selector) => (page) => page.locator(selector).first().click();
const pages = [
  { name: "sign-in", path: "/admin", token: "" },
  {
    name: "sign-in-wrong",
    path: "/admin",
    token: "",
    act: async (page) => {
      await page.locator("input[name=token]").fill("wrong");
      await page.keyboard.press("Enter");
    },
  },
  { name: "sales", path: "/admin" },
  { name: "sales-empty", path: "/admin", options: { sales: "none" } },
  { name: "sales-broken", path: "/admin", options: { sales: "broken" } },
  { name: "archived", path: "/admin#archived" },
  { name: "archived-empty", path: "/admin#archived", options: { sales: "none" } },
  { name: "archive", path: "/admin/s/archived" },
  { name: "ask-archive", path: "/admin/s/closed", act: click(".controls .archive") },
  {
    name: "ask-archive-refused",
    path: "/admin/s/closed",
    options: {
      refuse:
        'the sale "closed" cannot be archived yet: 3 orders are not paid; the last one expires at 2026-12-01T12:15:00Z',
    },
    act: async (page) => {
      await page.locator(".controls .archive").click();
      await page.locator("dialog [type=submit]").click();
    },
  },
  { name: "new", path: "/admin#new" },
  { name: "live", path: "/admin/s/phone-x", wait: 2500 },
  { name: "live-wrong", path: "/admin/s/wrong", wait: 2500 },
  { name: "live-lobby", path: "/admin/s/lobby" },
  { name: "live-many", path: "/admin/s/many" },
  { name: "live-bare", path: "/admin/s/bare" },
  { name: "live-stale", path: "/admin/s/stale", wait: 5200 },
  { name: "ask-close", path: "/admin/s/phone-x", act: click(".controls .close") },
  { name: "ask-line", path: "/admin/s/phone-x", act: click(".controls .line") },
  { name: "ask-stock", path: "/admin/s/phone-x", act: click(".controls .stock") },
  {
    name: "ask-refused",
    path: "/admin/s/phone-x",
    options: { refuse: 'the sale "phone-x" is closed: it is too late to pause it' },
    act: async (page) => {
      await page.locator(".controls .pause").click();
      await page.locator("dialog [type=submit]").click();
    },
  },
  { name: "orders", path: "/admin/s/phone-x#orders" },
  {
    name: "orders-none",
    path: "/admin/s/phone-x#orders",
    act: (page) => page.locator("[type=search]").fill("nobody"),
    wait: 700,
  },
  { name: "settings", path: "/admin/s/phone-x#settings" },
  {
    name: "settings-sound",
    path: "/admin/s/phone-x#settings",
    act: async (page) => {
      await page.locator("fieldset").nth(5).locator("input").first().fill("80");
      await page.locator("input[type=datetime-local]").nth(1).fill("2031-05-17T21:30");
    },
    wait: 900,
  },
  {
    name: "new-problem",
    path: "/admin#new",
    act: async (page) => {
      await page.locator("input.code").first().fill("autumn-drop");
      await page.locator("fieldset").last().locator("input").first().fill("many");
    },
    wait: 900,
  },
  { name: "no-sale", path: "/admin/s/nothing" },
  { name: "nowhere", path: "/admin/x" },
].filter(({ name }) => only.length === 0 || only.includes(name));

// axe looks once at each scheme: the same elements in another language break no other rule.
const kinds = ["en", "zh"]
  .flatMap((locale) => [
    { locale, wide: true, scheme: "light", inspect: locale === "en" },
    { locale, wide: false, scheme: "dark", inspect: locale === "zh" },
    { locale, wide: true, scheme: "dark" },
    { locale, wide: false, scheme: "light" },
  ])
  .map((kind) => ({ ...kind, name: `${kind.locale}-${kind.wide ? "wide" : "narrow"}-${kind.scheme}` }))
  .filter(({ name }) => !process.env.KINDS || process.env.KINDS.split(",").includes(name));

const stage = await openConsoleStage();
const browser = await openBrowser();
const problems = [];

for (const kind of kinds) {
  const taken = [];
  for (const shot of pages) taken.push({ name: shot.name, file: await take(kind, shot) });
  await contactSheet(browser, taken, kind.wide ? 480 : 190, join(folder, `sheet-${kind.name}.png`));
}
await browser.close();
await stage.close();
console.log(`${kinds.length * pages.length} pictures in ${folder}`);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);

async function take(
  { name: kind, locale, wide, scheme, inspect },
  { name, path, token = "stage-token", options, act, wait },
) {
  Object.assign(stage.options, { sales: "some", refuse: "" }, options);
  const context = await browser.newContext({
    locale,
    colorScheme: scheme,
    reducedMotion: "reduce",
    viewport: wide ? { width: 1600, height: 900 } : { width: 360, height: 740 },
    deviceScaleFactor: wide ? 1 : 2,
  });
  const page = await context.newPage();
  const note = (what) => problems.push(`${kind} ${name}: ${what}`);
  page.on("pageerror", (error) => note(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.location().url.includes("/api/")) note(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(stage.url)) note(`asked another host: ${request.url()}`);
    if (token && request.url().includes(`=${token}`)) note(`the token is in an address: ${request.url()}`);
  });
  await page.addInitScript((token) => {
    if (token) sessionStorage.setItem("sluice:admin", token);
  }, token);
  await page.goto(stage.url + path);
  await page.waitForTimeout(500);
  await act?.(page);
  await page.waitForTimeout(wait ?? 350);
  const file = join(folder, `${kind}-${name}.png`);
  await page.screenshot({ path: file, fullPage: !wide || !name.startsWith("ask") });

  for (const width of [320, 360, 768, 1100, 1920, 3840]) {
    await page.setViewportSize({ width, height: 900 });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (over > 0) note(`${over}px wider than a window of ${width}px`);
  }
  if (inspect) {
    const size = wide ? { width: 1600, height: 900 } : { width: 360, height: 740 };
    await page.setViewportSize(size);
    for (const violation of await violations(page)) note(violation);
  }
  await context.close();
  return file;
}

/** What axe finds. The policy of the page forbids scripts from elsewhere, so it comes in by the debugger. */
function violations(page) {
  return page
    .evaluate(async (source) => {
      const { violations, passes } = await new Function(`${source}; return axe;`)().run(document, {
        resultTypes: ["violations"],
      });
      if (passes.length < 5) return ["axe saw no page"];
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
    }, axe)
    .catch((error) => [`axe did not run: ${error.message}`]);
}
