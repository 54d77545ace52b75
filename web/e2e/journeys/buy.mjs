// One shopper's way through a sale: joins as a guest (or with TOKEN), waits, reloads in the line and keeps the number, opens
// a second tab that shows the same number, gets the turn, buys, and sees the confirmed order in both tabs and after another
// reload. The sale must be there, and keep the shopper in the line for a few seconds, or the line cannot be looked at.
//
// TOKEN   a user token of the shop, handed over in the address as the shop would; without it, guests must be allowed
import { eventually, journey, must, SALE } from "../journey.mjs";
import { device, Tab } from "../tab.mjs";

const { TOKEN } = process.env;

journey(async (browser) => {
  const context = await device(browser);
  const first = await Tab.open(context, "first tab");
  await first.visit(SALE, TOKEN ? `#token=${TOKEN}` : "");
  must(!first.page.url().includes("token"), "the token is still in the address of the page");

  await first.reach(["scheduled", "lobby", "queued", "turn"]);
  const joined = await first.reach(["queued", "turn"]);
  must(joined.view === "queued", "the turn came before the line could be looked at: the sale needs a slower line");
  const { number } = joined;
  must(number > 0, "the page is in line, but shows no number");

  await first.page.reload();
  const reloaded = await first.reach(["queued", "turn"]);
  must(reloaded.number === number, `the number was ${number}, and is ${reloaded.number} after a reload`);

  const second = await Tab.open(context, "second tab");
  await second.visit(SALE);
  const other = await second.reach(["queued", "turn"]);
  must(other.number === number, `the first tab has number ${number}, the second ${other.number}`);

  const turn = await first.reach("turn");
  must(turn.number === number, `the number was ${number}, and is ${turn.number} in the turn`);
  await second.reach("turn");

  await first.page.bringToFront();
  await first.press(/^Buy now/);
  const bought = await first.reach("order");
  must(
    ["reserved", "confirmed"].includes(bought.status),
    `the order is ${bought.status} right after it was made, and should be reserved or confirmed`,
  );
  const { order } = await first.reach("order", { status: "confirmed" });
  await second.reach("order", { order, status: "confirmed" });
  await eventually(
    "the second tab heard of the order before it was confirmed",
    () => second.tape.heard("order").length > 1,
  );

  await first.page.reload();
  const kept = await first.reach("order");
  must(kept.order === order, `the order was ${order}, and is ${kept.order} after a reload`);
  await first.keep();
  await second.keep();
  return `number ${number} kept through a reload and in a second tab; order ${order} ${kept.status}`;
});
