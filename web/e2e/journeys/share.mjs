// One place on two devices: the page gives out a link, which a second device opens. Both show the same number, and what is
// done on one is seen on the other.
import { journey, must, SALE } from "../journey.mjs";
import { Other } from "../other.mjs";
import { apply } from "../shop.mjs";
import { device, Tab } from "../tab.mjs";

journey(async (browser) => {
  await apply();
  const before = await Other.come();
  await before.hears("turn");
  const home = await device(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  const first = await Tab.open(home, "at home");
  await first.visit(SALE);
  const { number } = await first.reach("queued");
  await first.press("Continue on another device");
  await first.has("dialog[open] svg.qr path");
  await first.press("Copy the link");
  await first.says("Copied", "dialog[open]");
  const link = await first.page.evaluate(() => navigator.clipboard.readText());
  await first.press(/^Close$/);
  must(link.startsWith(`${first.base}/s/${SALE}#place=`), `the link is ${link}`);

  const away = await device(browser, { viewport: { width: 390, height: 844 } });
  const second = await Tab.open(away, "on the way");
  await second.page.goto(link);
  await second.reach("queued", { number });
  must(second.page.url() === `${second.base}/s/${SALE}`, "the token is still in the address of the page");

  await before.leave();
  await second.reach("turn", { number });
  await first.reach("turn", { number });
  await second.press("Leave the line");
  await second.press(/^Leave$/);
  await second.reach("left");
  await first.reach("none"); // told on the other device
  await first.keep();
  await first.press(/^Join the line$/);
  const again = await first.reach("turn");
  await first.press(/^Buy now/);
  const { order } = await first.reach("order", { status: "confirmed" });
  await second.press(/^Join the line$/);
  await second.reach("order", { order, status: "confirmed" });
  await second.keep();
  return `number ${number} on two devices, then ${again.number}; order ${order} on both`;
});
