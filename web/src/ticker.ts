import { Cell } from "./cell.ts";
import type { Clock } from "./clock.ts";

/** The server's time, moved on four times a second. Only what shows a clock reads it, so only that is drawn again. */
export const now = new Cell(Date.now());

/** Whether the browser says that it has a network. */
export const online = new Cell(true);

export function tick(clock: Clock): void {
  const update = () => {
    now.value = clock.now();
  };
  update();
  setInterval(update, 250);
}
