// The last unit is reserved for somebody else, comes back, and is bought and paid by the shopper who had waited for it;
// whoever waits behind them learns that nothing can come back any more.
import { journey } from "../journey.mjs";
import { Other } from "../other.mjs";
import { apply, items, settle } from "../shop.mjs";
import { device, shopper, Tab } from "../tab.mjs";

journey(async (browser) => {
  await apply({ items: items(1, 0), line: { active: 2, ratio: 5 } });
  const other = await Other.come();
  const tab = await shopper(browser);
  const { number } = await tab.reach("turn");
  const reserved = await other.buys();
  await tab.reach(["soldOut", "queued"]);
  await tab.reach("queued", { number }); // in line again, before everybody else
  await tab.says("All reserved", ".chip");
  const behind = await Tab.open(await device(browser), "who waits behind");
  await behind.visit(process.env.SALE);
  await behind.reach("queued");
  await behind.says("All reserved", ".chip");

  await settle(other.token, reserved.id, "cancel");
  await tab.reach("turn", { number });
  await behind.reach("turn");
  await tab.press(/^Buy now/);
  const { order } = await tab.reach("order", { status: "confirmed" });
  const { token } = await tab.page.evaluate(() => JSON.parse(localStorage.getItem("sluice:user")));
  await settle(token, order, "pay");
  await tab.reach("order", { order, status: "paid" });
  await behind.reach("soldOut");
  await behind.says("Sold out", "h1");
  await tab.keep();
  await behind.keep();
  return `order ${order} paid with the unit that came back`;
});
