// A shopper who is away for a while: a phone in flight mode, one that sleeps, and a page that is left and come back to.
// Each time the line has moved on, and the number is the same.

import { lay } from "../cable.mjs";
import { BASE_URL, journey, SALE } from "../journey.mjs";
import { Other } from "../other.mjs";
import { apply } from "../shop.mjs";
import { device, Tab } from "../tab.mjs";

journey(async (browser) => {
  await apply();
  const line = [];
  for (let i = 0; i < 4; i++) line.push(await Other.come());
  await line[0].hears("turn");
  const cable = await lay(BASE_URL);
  const context = await device(browser);
  const tab = await Tab.open(context, "the shopper", { base: cable.url });
  tab.expects(/WebSocket connection to/, /ERR_INTERNET_DISCONNECTED/);
  await tab.visit(SALE);
  const { number } = await tab.reach("queued", { ahead: "3" });
  /** Who has the turn leaves, and the next one gets it. */
  const moveOn = async () => {
    await line.shift().leave();
    await line[0].hears("turn");
  };

  await context.setOffline(true);
  cable.cut();
  await tab.says("You are offline", ".banner.link");
  await moveOn();
  cable.mend();
  await context.setOffline(false);
  await tab.lacks(".banner.link");
  await tab.reach("queued", { number, ahead: "2" });

  const debug = await context.newCDPSession(tab.page);
  await debug.send("Page.setWebLifecycleState", { state: "frozen" });
  await moveOn();
  await debug.send("Page.setWebLifecycleState", { state: "active" });
  await tab.reach("queued", { number, ahead: "1" });

  await tab.page.getByRole("link", { name: "All sales" }).click();
  await tab.says("Phone X", "h2");
  await moveOn();
  await tab.page.goBack();
  await tab.reach("queued", { number, ahead: "0" });
  await tab.keep();
  return `number ${number} kept through flight mode, sleep and a visit elsewhere`;
});
