// A shopper far away, on a slow line: gets in, and buys. The page must not ask for much, and for nothing from elsewhere.
import { BASE_URL, journey, must, SALE } from "../journey.mjs";
import { apply } from "../shop.mjs";
import { device, Tab } from "../tab.mjs";

// A page, its script, its style and its language; a guest; the icon, and the one of the turn. Each further one costs
// everybody a way round the world.
const MOST = 7;

journey(async (browser) => {
  await apply();
  const context = await device(browser);
  const tab = await Tab.open(context, "the shopper");
  const debug = await context.newCDPSession(tab.page);
  await debug.send("Network.enable");
  await debug.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: 400,
    downloadThroughput: 50 * 1024,
    uploadThroughput: 50 * 1024,
  });
  await tab.visit(SALE);
  await tab.reach("turn");
  await tab.press(/^Buy now/);
  const { order } = await tab.reach("order", { status: "confirmed" });
  const paths = [...new Set(tab.requests.map((url) => url.replace(BASE_URL, "")))];
  must(paths.length <= MOST, `the page asked for ${paths.length} things, ${MOST} are allowed: ${paths.join(", ")}`);
  return `order ${order} confirmed after ${paths.length} requests: ${paths.join(", ")}`;
});
