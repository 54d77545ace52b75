// Takes the pictures of docs/pages.md, and writes the table of them: every state of the page, on a desk and on a phone, in
// both languages, light and dark. OUT is the folder of the documents.
//
//   OUT=../docs npm run gallery
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { openStage } from "./stage.mjs";
import { kinds, pages, visit } from "./visit.mjs";

const out = process.env.OUT ?? "../docs";
const folder = join(out, "images", "pages");
const columns = [
  ["en-wide-light", "desk, English, light"],
  ["en-narrow-dark", "phone, English, dark"],
  ["zh-narrow-light", "phone, 中文, light"],
  ["zh-wide-dark", "desk, 中文, dark"],
];
const QUALITY = 0.82;
const WIDTH = { wide: 640, narrow: 300 }; // of a picture, in pixels

/** A picture made smaller, in a format that takes a fifth of PNG. */
async function shrink(press, png, width) {
  const url = await press.evaluate(
    async ([source, width, quality]) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      const canvas = document.createElement("canvas");
      canvas.width = width;
      canvas.height = Math.round((image.height * width) / image.width);
      const pen = canvas.getContext("2d");
      pen.imageSmoothingQuality = "high";
      pen.drawImage(image, 0, 0, canvas.width, canvas.height);
      return canvas.toDataURL("image/webp", quality);
    },
    [`data:image/png;base64,${png.toString("base64")}`, width, QUALITY],
  );
  return Buffer.from(url.split(",")[1], "base64");
}

const stage = await openStage();
const browser = await openBrowser();
const press = await browser.newPage();
const problems = [];
const titles = new Map();
rmSync(folder, { recursive: true, force: true });
for (const [name] of columns) {
  const kind = kinds.find((kind) => kind.name === name);
  mkdirSync(join(folder, name), { recursive: true });
  for (const page of pages) {
    const seen = await visit(browser, stage, kind, page, (what) => problems.push(`${name} ${page.name}: ${what}`));
    if (!titles.has(page.name)) titles.set(page.name, await seen.page.title());
    const png = await seen.page.screenshot({ fullPage: !kind.wide });
    writeFileSync(
      join(folder, name, `${page.name}.webp`),
      await shrink(press, png, WIDTH[kind.wide ? "wide" : "narrow"]),
    );
    await seen.context.close();
  }
  console.log(`${name}: ${pages.length} pictures`);
}
await browser.close();
await stage.close();

const row = ({ name }) =>
  `| **${name}**<br>${titles.get(name).split(" · ")[0]} | ${columns
    .map(([kind]) => {
      const { wide } = kinds.find((k) => k.name === kind);
      return `<img src="images/pages/${kind}/${name}.webp" width="${wide ? 320 : 150}" alt="">`;
    })
    .join(" | ")} |`;
const table = [
  `| state, and its words in the window's title | ${columns.map(([, title]) => title).join(" | ")} |`,
  `|---|${columns.map(() => "---").join("|")}|`,
  ...pages.map(row),
].join("\n");
const file = join(out, "pages.md");
const text = readFileSync(file, "utf8");
writeFileSync(
  file,
  text.replace(/<!-- gallery -->[\s\S]*<!-- end -->/, `<!-- gallery -->\n\n${table}\n\n<!-- end -->`),
);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
