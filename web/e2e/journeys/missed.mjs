// A turn that nobody uses is over, and a new place has a new number. A place that is given up stays given up, also after a
// reload, until its shopper wants another.
import { journey, must } from "../journey.mjs";
import { apply } from "../shop.mjs";
import { shopper } from "../tab.mjs";

journey(async (browser) => {
  await apply({ line: { turn: "1s" } });
  const tab = await shopper(browser);
  const { number: first } = await tab.reach("missed");
  await apply();
  await tab.press("Join the line again");
  const { number: second } = await tab.reach("turn");
  must(Number(second) > Number(first), `the new place has number ${second}, the old one had ${first}`);

  await tab.press("Leave the line");
  await tab.press("Stay");
  await tab.reach("turn", { number: second });
  await tab.press("Leave the line");
  await tab.press(/^Leave$/);
  await tab.reach("left");
  await tab.page.reload();
  await tab.reach("left");
  await tab.press(/^Join the line$/);
  const { number: third } = await tab.reach("turn");
  must(Number(third) > Number(second), `the third place has number ${third}, the second had ${second}`);
  await tab.keep();
  return `numbers ${first}, ${second}, ${third}`;
});
