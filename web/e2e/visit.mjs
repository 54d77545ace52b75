// A visit to one of the stage's pages, up to the moment that a picture is taken.
import { scenes } from "./scenes.mjs";

/** All pages that there are to see: name, path, what the stage is told, and the scene that it plays. */
export const pages = [
  { name: "list", path: "/" },
  { name: "list-empty", path: "/", options: { sales: "none" } },
  { name: "list-failed", path: "/", options: { sales: "broken" } },
  { name: "sign-in", path: "/s/queued", options: { guests: false } },
  { name: "not-found", path: "/nowhere" },
  ...Object.entries(scenes).map(([name, scene]) => ({ name, path: `/s/${name}`, scene })),
];

/** The ways in which each is looked at. axe looks once at each scheme: another language breaks no other rule of it. */
export const kinds = ["en", "zh"]
  .flatMap((locale) => [
    { locale, wide: true, scheme: "light", inspect: locale === "en" },
    { locale, wide: false, scheme: "dark", inspect: locale === "zh" },
    { locale, wide: true, scheme: "dark" },
    { locale, wide: false, scheme: "light" },
  ])
  .map((kind) => ({ ...kind, name: `${kind.locale}-${kind.wide ? "wide" : "narrow"}-${kind.scheme}` }));

/** Opens a page and brings it to where its scene ends. note hears of whatever is wrong; the caller closes the context. */
export async function visit(browser, stage, { locale, wide, scheme }, { path, options, scene }, note) {
  Object.assign(stage.options, { sales: "some", guests: true }, options);
  const context = await browser.newContext({
    locale,
    colorScheme: scheme,
    viewport: wide ? { width: 1280, height: 800 } : { width: 360, height: 740 },
    deviceScaleFactor: wide ? 1 : 2,
    reducedMotion: "reduce", // what turns would make two pictures of the same scene differ
  });
  const page = await context.newPage();
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
  return { context, page };
}
