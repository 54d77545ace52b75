import { useEffect } from "preact/hooks";
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

/** Marks the page's icon while it is the shopper's turn, and has them called when it comes. */
export function useCall({ view, sale }: State, title: string, attention: Attention): void {
  const { t, tag } = language.value;
  const turn = view.name === "turn" && sale?.line.order !== "off";
  useEffect(() => mark(turn), [turn]);
  useEffect(() => attention.follow(view.name, turn, t.turn, title, tag), [view.name]);
}
