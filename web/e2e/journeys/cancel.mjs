// An order that its buyer does not want after all: it is cancelled in the page, its unit is back in the sale, and the same
// shopper takes a new place and buys again.
import { journey, must } from "../journey.mjs";
import { apply, items, stockIs } from "../shop.mjs";
import { shopper } from "../tab.mjs";

journey(async (browser) => {
  await apply({ items: items(1, 0) });
  const tab = await shopper(browser);
  const { number } = await tab.reach("turn");
  await tab.press(/^Buy now/);
  const { order } = await tab.reach("order", { status: "confirmed" });
  await stockIs(0);

  await tab.press("Cancel the order");
  await tab.press("Keep it");
  await tab.reach("order", { order, status: "confirmed" });
  await tab.press("Cancel the order");
  await tab.page.locator("dialog[open]").getByRole("button", { name: "Cancel the order" }).click();
  await tab.reach("order", { order, status: "cancelled" });
  await stockIs(1);
  await tab.page.reload();
  await tab.reach("order", { order, status: "cancelled" });
  await tab.keep();

  await tab.press("Join the line again");
  const again = await tab.reach("turn");
  must(Number(again.number) > Number(number), `the new place has number ${again.number}, the old one had ${number}`);
  await tab.press(/^Buy now/);
  const second = await tab.reach("order", { status: "confirmed" });
  must(second.order !== order, "the new order has the id of the cancelled one");
  return `order ${order} cancelled, order ${second.order} confirmed`;
});
