// The server goes away under a shopper and comes back: told to stop, and killed, while they wait; killed in their turn. The
// number stays, nobody gets in front, and the page says what is going on.
import { eventually, journey, must, please } from "../journey.mjs";
import { Other } from "../other.mjs";
import { apply } from "../shop.mjs";
import { shopper } from "../tab.mjs";

journey(async (browser) => {
  await apply();
  const first = await Other.come({ stays: true });
  await first.hears("turn");
  const second = await Other.come({ stays: true });
  const tab = await shopper(browser);
  // The browser writes down each attempt that fails, and the icon of the turn may be on its way when the server is killed.
  tab.expects(/WebSocket connection to/, /Failed to load resource: net::ERR_CONNECTION/);
  const { number } = await tab.reach("queued", { ahead: "1" });

  /** The server goes, the page says that it is away, the server comes, the page is back. */
  const restart = async (how) => {
    const welcomes = tab.tape.heard("welcome").length;
    await please(how);
    await tab.says("Reconnecting", ".banner.link");
    await please("start");
    await tab.hears("welcome", welcomes);
    await tab.lacks(".banner.link");
    for (const other of [first, second]) if (other.stays) await other.hears("welcome");
  };
  await restart("stop");
  must(tab.tape.heard("moving").length > 0, "the page was not told that the server moves its shoppers elsewhere");
  await tab.reach("queued", { number, ahead: "1" });
  await restart("kill");
  await tab.reach("queued", { number, ahead: "1" });

  await first.leave();
  await second.hears("turn");
  await second.leave();
  await tab.reach("turn", { number });
  await restart("kill");
  await tab.reach("turn", { number });
  await tab.press(/^Buy now/);
  const { order } = await tab.reach("order", { status: "confirmed" });
  await tab.keep();
  const numbers = await eventually(
    "the page has shown numbers",
    () => new Set(tab.seen.flatMap((at) => at.number ?? [])),
  );
  must(numbers.size === 1, `the page has shown the numbers ${[...numbers]}`);
  return `number ${number} kept through three restarts; order ${order} confirmed`;
});
