// A device whose clock is hours behind, and stands still besides: what is counted down, in the lobby and in the turn, is
// the server's time all the same.
import { journey, must, SALE } from "../journey.mjs";
import { apply, operate, view } from "../shop.mjs";
import { device, Tab } from "../tab.mjs";

const NEAR_MS = 2000;

/** What a countdown says, in ms. */
const ms = (text) => text.split(":").reduce((sum, part) => sum * 60 + Number(part), 0) * 1000;

/** The server runs on this machine, so that its time is ours: the page's is not. */
async function agrees(tab, until, where) {
  const before = Date.now();
  const said = ms(await tab.page.locator(".big .digits").textContent());
  const after = Date.now();
  must(
    said <= until - before + NEAR_MS && said >= until - after - NEAR_MS,
    `in the ${where} the page says ${said} ms, and it is ${until - after} ms`,
  );
}

journey(async (browser) => {
  await apply({ opens_at: "+1h" });
  const context = await device(browser);
  const tab = await Tab.open(context, "the shopper");
  await tab.page.clock.setFixedTime(Date.now() - 5 * 3_600_000);
  await tab.visit(SALE);
  await tab.reach("lobby");
  await agrees(tab, (await view()).opens_at, "lobby");
  await operate("open");
  await tab.reach("turn");
  await agrees(tab, tab.tape.heard("turn").at(-1).until, "turn");
  const shown = await tab.page.evaluate(() => Date.now());
  must(Date.now() - shown > 4 * 3_600_000, "the clock of the device was not wrong");
  await tab.keep();
  return "both countdowns follow the server";
});
