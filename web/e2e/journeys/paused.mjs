// An operator pauses a sale, lets it go on, and closes it: one shopper sees it in the turn, another in the line.
import { eventually, journey } from "../journey.mjs";
import { apply, operate } from "../shop.mjs";
import { shopper } from "../tab.mjs";

journey(async (browser) => {
  await apply();
  const called = await shopper(browser, { name: "who is called" });
  await called.reach("turn");
  const waiting = await shopper(browser, { name: "who waits" });
  const { number } = await waiting.reach("queued");

  await operate("pause");
  for (const tab of [called, waiting]) await tab.says("The sale is paused", ".banner");
  const buy = called.page.locator("button.buy");
  await eventually("nothing can be bought in a pause", () => buy.isDisabled());
  await operate("resume");
  for (const tab of [called, waiting]) await tab.lacks(".banner");
  await called.reach("turn");
  await waiting.reach("queued", { number });
  await eventually("it can be bought again", () => buy.isEnabled());

  await operate("close");
  for (const tab of [called, waiting]) {
    await tab.reach("closed");
    await tab.keep();
  }
  return "paused, resumed and closed in the turn and in the line";
});
