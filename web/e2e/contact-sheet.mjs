import { readFileSync } from "node:fs";

/** Takes one picture of many, each `width` pixels wide under its name, for those who look at them all. */
export async function contactSheet(browser, taken, width, file) {
  const page = await browser.newPage({ viewport: { width: 2000, height: 1000 } });
  const image = (path) => `data:image/png;base64,${readFileSync(path).toString("base64")}`;
  await page.setContent(
    `<body style="margin:8px;background:#888;font:12px sans-serif;display:flex;flex-wrap:wrap;gap:8px;align-items:start">${taken
      .map(({ name, file }) => `<div style="width:${width}px">${name}<img width="${width}" src="${image(file)}"></div>`)
      .join("")}`,
  );
  await page.screenshot({ path: file, fullPage: true });
  await page.close();
}
