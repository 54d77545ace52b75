import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { language } from "../lang/index.ts";
import type { Item } from "../protocol.ts";
import type { Actions } from "../session.ts";
import type { State, View } from "../state.ts";
import { now } from "../ticker.ts";
import { Message } from "./frame.tsx";
import { Bar, Countdown } from "./parts.tsx";

const URGENT_MS = 10_000;

/** The right to buy: what, how many, and how long it lasts. */
export function TurnView({ state, view, actions }: { state: State; view: View & { name: "turn" }; actions: Actions }) {
  const { t, f } = language.value;
  const sale = state.sale;
  const stock = new Map(view.items.map(({ id, stock }) => [id, stock]));
  const items = (sale?.items ?? []).filter(({ id }) => stock.has(id));
  const [wanted, setWanted] = useState("");
  const [qty, setQty] = useState(1);

  const inStock = (item: Item) => (stock.get(item.id) ?? 0) > 0;
  const chosen = items.find((item) => item.id === wanted && inStock(item)) ?? items.find(inStock);
  const most = Math.max(1, Math.min(view.limit, chosen ? (stock.get(chosen.id) ?? 1) : 1));
  const fewer = state.notice?.kind === "fewer" ? state.notice.left : most;
  const units = Math.min(qty, most, fewer);
  const price = chosen?.price && sale?.currency ? f.price(chosen.price * units, sale.currency) : undefined;
  const paused = state.pause !== undefined;
  const direct = sale?.line.order === "off";

  return (
    <section class="card turn">
      <h1>{direct ? t.turnOff : t.turn}</h1>
      {direct ? (
        <p class="more">{t.untilClose(f.moment(view.until, now.value))}</p>
      ) : (
        <Clock view={view} paused={paused} />
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (chosen) actions.grab(chosen.id, units);
        }}
      >
        {items.length > 1 && (
          <fieldset class="items">
            <legend>{t.choose}</legend>
            {items.map((item) => (
              <label key={item.id} class="item">
                <input
                  type="radio"
                  name="item"
                  value={item.id}
                  checked={item === chosen}
                  disabled={!inStock(item)}
                  onChange={() => setWanted(item.id)}
                />
                <span class="itemName">{f.text(item.title, item.id)}</span>
                <span class="itemPrice">
                  {!inStock(item) ? t.soldOut : item.price && sale?.currency ? f.price(item.price, sale.currency) : ""}
                </span>
              </label>
            ))}
          </fieldset>
        )}
        {items.length === 1 && chosen && <p class="only">{f.text(chosen.title, chosen.id)}</p>}
        {view.limit > 1 && chosen && (
          <div class="qty">
            <span id="qty">
              {t.quantity} <small>{t.upTo(f.number(view.limit))}</small>
            </span>
            <fieldset class="stepper" aria-labelledby="qty">
              <button type="button" aria-label={t.fewer} disabled={units <= 1} onClick={() => setQty(units - 1)}>
                −
              </button>
              <output>{f.number(units)}</output>
              <button
                type="button"
                aria-label={t.more}
                disabled={units >= Math.min(most, fewer)}
                onClick={() => setQty(units + 1)}
              >
                +
              </button>
            </fieldset>
          </div>
        )}
        <button type="submit" class="button buy" disabled={!chosen || paused}>
          {!chosen ? t.soldOut : price ? t.buyFor(price) : t.buy}
        </button>
      </form>
    </section>
  );
}

function Clock({ view, paused }: { view: View & { name: "turn" }; paused: boolean }) {
  const { t } = language.value;
  const left = view.until - useCell(now);
  return (
    <div class={left < URGENT_MS && !paused ? "clock urgent" : "clock"}>
      <p class="label">{t.timeLeft}</p>
      <p class="big" role="timer" aria-live="off">
        <Countdown until={view.until} frozen={paused} />
      </p>
      {paused ? (
        <p class="label">{t.timeStopped}</p>
      ) : (
        <Bar value={left / Math.max(1, view.until - view.began)} label={t.timeLeft} urgent={left < URGENT_MS} />
      )}
    </div>
  );
}

export function Grabbing() {
  const { t } = language.value;
  return <Message title={t.grabbing} more={t.grabbingMore} tone="busy" />;
}
