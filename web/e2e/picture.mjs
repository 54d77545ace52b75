// Takes the pictures of the README from a real sale: a shopper in line, in the turn, and with the order, side by side.
//
//   BASE_URL=http://127.0.0.1:8080 SALE=demo LOCALE=en OUT=../docs/images/sale.png npm run picture
//
// LOCALE and OUT may be several, separated by commas: as many shoppers come, and one picture is made of each. The sale
// must keep them in the line for a few seconds and have something left when it is their turn, as that of
// `sluice demo --users 420 --stock 500 --opens-in 30s` does.
import { openBrowser } from "./browser.mjs";

const { BASE_URL, SALE, LOCALE = "en", OUT } = process.env;
if (!BASE_URL || !SALE || !OUT) {
  console.error("BASE_URL, SALE and OUT must be set");
  process.exit(2);
}
const outs = OUT.split(",");
const patience = 120_000;

/** Waits until the page is at that view, and the order, if any, is no longer on its way. */
function reach(page, view) {
  return page.waitForFunction(
    (view) => {
      const at = document.querySelector("[data-view]")?.dataset;
      return at?.view === view && at.status !== "reserved";
    },
    view,
    { timeout: patience },
  );
}

async function shoot(page, view) {
  await reach(page, view);
  await page.waitForTimeout(400); // what moves has come to rest
  return (await page.screenshot()).toString("base64");
}

async function visit(browser, locale, out) {
  const context = await browser.newContext({
    locale,
    viewport: { width: 400, height: 820 },
    deviceScaleFactor: 2,
    colorScheme: "light",
  });
  const page = await context.newPage();
  await page.goto(`${BASE_URL}/s/${SALE}`);
  await reach(page, "queued");
  const joinedBehind = await page.evaluate(() => Number(document.querySelector("[data-view]").dataset.ahead));
  await page.waitForFunction(
    (ahead) => Number(document.querySelector("[data-view]").dataset.ahead) < ahead * 0.7,
    joinedBehind,
    { timeout: patience },
  );
  const shots = [await shoot(page, "queued"), await shoot(page, "turn")];
  await page.locator("button.buy").click();
  shots.push(await shoot(page, "order"));

  const sheet = await context.newPage();
  await sheet.setViewportSize({ width: 1272, height: 860 });
  const figures = shots.map((shot) => `<img src="data:image/png;base64,${shot}">`).join("");
  await sheet.setContent(
    `<style>body{margin:0;padding:20px;display:flex;gap:16px;background:#d9dee6}img{width:400px;border-radius:14px;box-shadow:0 2px 14px #0003}</style>${figures}`,
  );
  await sheet.screenshot({ path: out });
}

const browser = await openBrowser();
try {
  await Promise.all(LOCALE.split(",").map((locale, i) => visit(browser, locale, outs[i])));
} finally {
  await browser.close();
}
