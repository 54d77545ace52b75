// Takes a picture of every view, in both languages, wide and narrow, light and dark, into $SHOTS (default /tmp/shots), with
// a contact sheet for each kind. Fails on anything the browser complains of, on what axe finds, on what does not fit into
// 320 px, from left to right and from right to left, and on two scenes that look the same and are not said to. Names of
// scenes as arguments take only those; KINDS=en-wide-light,… only those kinds.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { contactSheet } from "./contact-sheet.mjs";
import { alike } from "./scenes.mjs";
import { openStage } from "./stage.mjs";
import { kinds as everyKind, pages as everyPage, visit } from "./visit.mjs";

const folder = process.env.SHOTS || "/tmp/shots";
const only = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
mkdirSync(folder, { recursive: true });

const pages = everyPage.filter(({ name }) => only.length === 0 || only.includes(name));
const kinds = everyKind.filter(({ name }) => !process.env.KINDS || process.env.KINDS.split(",").includes(name));
const stage = await openStage();
const browser = await openBrowser();
const problems = [];

for (const way of kinds) {
  const { name: kind, wide, inspect } = way;
  const taken = [];
  for (const visited of pages) {
    const { name } = visited;
    const note = (what) => problems.push(`${kind} ${name}: ${what}`);
    const { context, page } = await visit(browser, stage, way, visited, note);
    const file = join(folder, `${kind}-${name}.png`);
    await page.screenshot({ path: file, fullPage: !wide });
    taken.push({ name, file });

    for (const width of [320, 360, 3840]) {
      await page.setViewportSize({ width, height: 740 });
      const over = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      if (over > 0) note(`${over}px wider than a window of ${width}px`);
      const otherWay = await page.evaluate(() => {
        document.documentElement.dir = "rtl";
        const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        document.documentElement.dir = "ltr";
        return over;
      });
      if (otherWay > 0) note(`${otherWay}px wider than a window of ${width}px, from right to left`);
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
  await contactSheet(browser, taken, wide ? 380 : 190, join(folder, `sheet-${kind}.png`));
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
