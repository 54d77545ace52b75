// The page inside a page of the shop, which is of another site: works where the shop is allowed to do that, and is blocked
// where it is not.
//
// SHOP     the address of a page of the shop that shows ?page= in a frame; BASE_URL allows it
// CLOSED   a server of the same sale that allows nobody
import { BASE_URL, eventually, journey, must, SALE } from "../journey.mjs";
import { apply } from "../shop.mjs";
import { device, Tab } from "../tab.mjs";

const { SHOP, CLOSED } = process.env;

journey(async (browser) => {
  await apply();
  const context = await device(browser);
  const tab = await Tab.open(context, "the shop", { base: SHOP });
  tab.expects(new RegExp(`asked ${BASE_URL}`));
  const address = `${BASE_URL}/s/${SALE}`;
  await tab.page.goto(`${SHOP}/?page=${encodeURIComponent(address)}`);
  const inside = await eventually("the page is in the frame", () => tab.page.frames().find((f) => f.url() === address));
  const at = () => inside.evaluate(() => ({ ...document.querySelector("[data-view]")?.dataset }));
  await eventually("the turn in the frame", at, ({ view }) => view === "turn");
  await inside.locator("button.buy").click();
  const { order } = await eventually("the order in the frame", at, ({ status }) => status === "confirmed");
  await tab.note("inside");

  const elsewhere = await Tab.open(context, "another shop", { base: SHOP });
  elsewhere.expects(new RegExp(`asked ${CLOSED}`), /frame-ancestors/);
  const refused = `${CLOSED}/s/${SALE}`;
  const failed = [];
  elsewhere.page.on("requestfailed", (request) => failed.push(request.url()));
  await elsewhere.page.goto(`${SHOP}/?page=${encodeURIComponent(refused)}`);
  await eventually("the page that nobody may frame is blocked", () => failed.includes(refused));
  for (const frame of elsewhere.page.frames().slice(1)) {
    must((await frame.locator("#page").count()) === 0, "a page that nobody may frame is in a frame");
  }
  await elsewhere.note("blocked");
  return `order ${order} confirmed in a frame; the other frame was blocked`;
});
