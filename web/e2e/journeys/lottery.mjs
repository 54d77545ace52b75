// A lottery, with nothing but the keyboard: waits in the lobby, sees what the shop has bound itself to, is drawn, has the
// page repeat the draw, gets the turn, buys, and pays in the page.
import { eventually, journey, must } from "../journey.mjs";
import { Other } from "../other.mjs";
import { apply, operate, view } from "../shop.mjs";
import { shopper } from "../tab.mjs";

journey(async (browser) => {
  /** So much of the stock is offered at once; of a millionth of it nobody is called, so that the draw can be looked at. */
  const offer = (ratio) => apply({ opens_at: "+1h", line: { order: "lottery", active: 0, ratio } });
  await offer(1e-6);
  await Promise.all(Array.from({ length: 5 }, () => Other.come()));
  const tab = await shopper(browser);
  const lobby = await tab.reach("lobby");
  must(lobby.number === undefined, `before the draw the page shows number ${lobby.number}`);
  const { commitment } = (await view()).line;
  await tab.says(commitment, ".hash");

  await operate("open");
  const drawn = await tab.reach("queued");
  must(drawn.number >= 1 && drawn.number <= 6, `of six who were in the lobby one has number ${drawn.number}`);
  await tab.pressByKey("Check the draw", "Enter");
  const steps = await eventually(
    "the draw was repeated in the page",
    () => tab.page.$$eval("[data-step]", (steps) => steps.map(({ dataset }) => [dataset.step, dataset.holds])),
    (steps) => steps.length > 0,
  );
  must(
    steps.every(([, holds]) => holds === "true") &&
      String(steps.map(([step]) => step)) === "noted,commitment,seed,entry,path,place",
    `the draw does not hold: ${JSON.stringify(steps)}`,
  );
  await tab.note("checked");

  await offer(5);
  await tab.reach("turn", { number: drawn.number });
  await tab.pressByKey("Buy now", "Space");
  const { order } = await tab.reach("order", { status: "confirmed" });
  await tab.pressByKey("Pay now", "Enter");
  await tab.reach("order", { order, status: "paid" });
  await tab.keep();
  return `number ${drawn.number} of 6, the draw holds, order ${order} paid`;
});
