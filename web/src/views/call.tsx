import { useEffect, useRef } from "preact/hooks";
import { type Attention, mark } from "../attention.ts";
import { useCell } from "../cell.ts";
import { language } from "../lang/index.ts";
import type { State } from "../state.ts";

/** Lets a shopper who waits ask to be called when the turn comes. */
export function CallMe({ attention }: { attention: Attention }) {
  const { t } = language.value;
  const means = useCell(attention.means);
  return (
    <label class="call">
      <input
        type="checkbox"
        checked={means !== "none"}
        onChange={(event) => (event.currentTarget.checked ? void attention.on() : attention.off())}
      />
      <span>
        {t.callMe} <small>{t.callMeans[means]}</small>
      </span>
    </label>
  );
}

/** Marks the page's icon while it is the shopper's turn, and calls them when a turn comes to somebody who has waited. */
export function useCall({ view, sale }: State, title: string, attention: Attention): void {
  const { t, tag } = language.value;
  const before = useRef(view.name);
  const turn = view.name === "turn" && sale?.line.order !== "off";
  useEffect(() => mark(turn), [turn]);
  useEffect(() => {
    // A page that was loaded in the middle of a turn has nothing new to tell.
    if (turn && before.current !== "connecting") attention.call(t.turn, title, tag);
    before.current = view.name;
  }, [view.name]);
}
