// Takes a picture of every view, in both languages, wide and narrow, light and dark, into $SHOTS (default /tmp/shots), with
// a contact sheet for each kind. Fails on anything the browser complains of, on what axe finds, on what does not fit into
// 320 px, and on two scenes that look the same and are not said to. Names of scenes as arguments take only those; KINDS=en-wide-light,… only those kinds.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { alike, scenes } from "./scenes.mjs";
import { openStage } from "./stage.mjs";

const folder = process.env.SHOTS || "/tmp/shots";
const only = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
mkdirSync(folder, { recursive: true });

const pages = [
  { name: "list", path: "/" },
  { name: "list-empty", path: "/", options: { sales: "none" } },
  { name: "list-failed", path: "/", options: { sales: "broken" } },
  { name: "sign-in", path: "/s/queued", options: { guests: false } },
  { name: "not-found", path: "/nowhere" },
  ...Object.entries(scenes).map(([name, scene]) => ({ name, path: `/s/${name}`, scene })),
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

const stage = await openStage();
const browser = await openBrowser();
const problems = [];

for (const { name: kind, locale, wide, scheme, inspect } of kinds) {
  const taken = [];
  for (const { name, path, options, scene } of pages) {
    Object.assign(stage.options, { sales: "some", guests: true }, options);
    const context = await browser.newContext({
      locale,
      colorScheme: scheme,
      viewport: wide ? { width: 1280, height: 800 } : { width: 360, height: 740 },
      deviceScaleFactor: wide ? 1 : 2,
      reducedMotion: "reduce", // what turns would make two pictures of the same scene differ
    });
    const page = await context.newPage();
    const note = (what) => problems.push(`${kind} ${name}: ${what}`);
    page.on("pageerror", (error) => note(error.message));
    page.on("console", (message) => {
      const expected = message.location().url.includes("/api/") || /WebSocket/.test(message.text());
      if (message.type() === "error" && !expected) note(message.text());
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(stage.url)) note(`asked another host: ${request.url()}`);
    });
    let heard = 0;
    let closed = 0;
    page.on("websocket", (socket) => {
      socket.on("framereceived", () => heard++);
      socket.on("close", () => closed++);
    });
    Object.assign(stage.played, { asked: 0, told: 0 });
    /** Waits until the page has asked so much, and has heard and drawn all that it was told. */
    const settled = async (asked, ends) => {
      const { played } = stage;
      while (played.asked < asked || heard < played.told || (ends && closed === 0)) await page.waitForTimeout(20);
      await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    };
    await page.goto(stage.url + path);
    if (scene) {
      await settled(1, scene.close && !scene.offline);
      for (const what of scene.press ?? []) await page.locator(what).click();
      if (scene.offline) await context.setOffline(true);
      await settled(scene.answer ? 2 : 1, scene.close);
    } else await page.waitForLoadState("networkidle");
    await page.waitForTimeout(60); // the last of what is drawn late, such as the code in a dialog
    const file = join(folder, `${kind}-${name}.png`);
    await page.screenshot({ path: file, fullPage: !wide });
    taken.push({ name, file });

    for (const width of [320, 360, 3840]) {
      await page.setViewportSize({ width, height: 740 });
      const over = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      if (over > 0) note(`${over}px wider than a window of ${width}px`);
    }
    if (inspect) {
      const found = await page
        .evaluate(async (source) => {
          // The policy of the page forbids scripts from elsewhere, so axe comes in by the debugger.
          const { violations, passes } = await new Function(`${source}; return axe;`)().run(document, {
            resultTypes: ["violations"],
          });
          if (passes.length < 5) return ["axe saw no page"];
          return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
        }, axe)
        .catch((error) => [`axe did not run: ${error.message}`]);
      for (const violation of found) note(violation);
    }
    await context.close();
  }
  for (const [one, other] of twins(taken)) problems.push(`${kind}: ${one} looks the same as ${other}`);
  const sheet = await browser.newPage({ viewport: { width: 2000, height: 1000 } });
  const cell = wide ? 380 : 190;
  const image = (file) => `data:image/png;base64,${readFileSync(file).toString("base64")}`;
  await sheet.setContent(
    `<body style="margin:8px;background:#888;font:12px sans-serif;display:flex;flex-wrap:wrap;gap:8px;align-items:start">${taken
      .map(({ name, file }) => `<div style="width:${cell}px">${name}<img width="${cell}" src="${image(file)}"></div>`)
      .join("")}`,
  );
  await sheet.screenshot({ path: join(folder, `sheet-${kind}.png`), fullPage: true });
  await sheet.close();
}

/** The pairs of pictures that are the same though nobody has said that they are. */
function twins(taken) {
  const seen = new Map();
  const pairs = [];
  for (const { name, file } of taken) {
    const hash = createHash("sha256").update(readFileSync(file)).digest("hex");
    const other = seen.get(hash);
    const said = alike.some((pair) => pair.includes(name) && pair.includes(other));
    if (other && !said) pairs.push([name, other]);
    if (!other) seen.set(hash, name);
  }
  return pairs;
}

await browser.close();
await stage.close();
console.log(`${kinds.length * pages.length} pictures in ${folder}`);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
