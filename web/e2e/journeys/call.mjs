// A shopper who looks elsewhere is called when the turn has come: by one notification, and by the icon of the page.
import { eventually, journey, must, SALE } from "../journey.mjs";
import { Other } from "../other.mjs";
import { apply } from "../shop.mjs";
import { device, Tab } from "../tab.mjs";

const icon = (tab) => tab.page.locator('link[rel="icon"]').getAttribute("href");

journey(async (browser) => {
  await apply();
  const before = await Other.come();
  await before.hears("turn");
  const context = await device(browser, { permissions: ["notifications"] });
  // A headless browser shows no notifications: that the page makes them is as far as it can be looked at.
  await context.addInitScript(() => {
    window.calls = [];
    const Real = Notification;
    window.Notification = class extends Real {
      constructor(title, options) {
        super(title, options);
        window.calls.push({ title, ...options });
      }
    };
  });
  const tab = await Tab.open(context, "the shopper");
  await tab.visit(SALE);
  await tab.reach("queued");
  must(!(await icon(tab)).includes("badge"), "the icon is marked before the turn");
  await tab.page.getByRole("checkbox", { name: "Call me when it is my turn" }).click();
  await tab.says("see a notification", ".call");

  await hide(tab.page, true);
  await before.leave();
  await tab.reach("turn");
  const calls = await eventually(
    "the page calls",
    () => tab.page.evaluate(() => window.calls),
    (calls) => calls.length > 0,
  );
  must(calls[0].title === "It is your turn" && calls[0].body.includes("Phone X"), `it calls: ${JSON.stringify(calls)}`);
  await eventually(
    "the icon is the badge",
    () => icon(tab),
    (href) => href.includes("badge"),
  );
  await hide(tab.page, false);
  await tab.press(/^Buy now/);
  await tab.reach("order", { status: "confirmed" });
  await eventually(
    "the icon is as before",
    () => icon(tab),
    (href) => !href.includes("badge"),
  );
  const all = await tab.page.evaluate(() => window.calls.length);
  must(all === 1, `there were ${all} notifications`);
  return "one notification, and the badge while it was the turn";
});

/** Has the page believe that another tab is in front, or not any more: a headless browser hides no page. */
function hide(page, hidden) {
  return page.evaluate((hidden) => {
    Object.defineProperty(document, "visibilityState", { value: hidden ? "hidden" : "visible", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
}
