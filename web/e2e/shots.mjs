// Takes a picture of every view, in both languages, wide and narrow, light and dark, into $SHOTS (default /tmp/shots), with
// a contact sheet for each kind. Fails on anything the browser complains of, on what axe finds, and on what does not fit
// into 320 px. Names of scenes as arguments take only those; KINDS=en-wide-light,… only those kinds.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { scenes } from "./scenes.mjs";
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
    await page.goto(stage.url + path);
    await page.waitForTimeout(150);
    if (scene?.grab) await page.locator(".buy").click();
    if (scene?.leave || scene?.ask) await page.locator(".quiet").click();
    if (scene?.leave) await page.locator("dialog .second").click();
    if (scene?.offline) await context.setOffline(true);
    await page.waitForTimeout(scene?.once ? 500 : 250);
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

await browser.close();
await stage.close();
console.log(`${kinds.length * pages.length} pictures in ${folder}`);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
