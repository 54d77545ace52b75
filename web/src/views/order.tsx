import { useCell } from "../cell.ts";
import { language } from "../lang/index.ts";
import { isLive } from "../protocol.ts";
import type { Actions } from "../session.ts";
import type { State, View } from "../state.ts";
import { now } from "../ticker.ts";
import { Ask, Countdown, Fact } from "./parts.tsx";
import { orderHead } from "./words.ts";

/** What was bought, and how far it is on its way. */
export function OrderView(props: { view: View & { name: "order" }; state: State; actions: Actions }) {
  const { t, f } = language.value;
  const { view, state, actions } = props;
  const { sale } = state;
  const { order } = view;
  const item = sale?.items.find(({ id }) => id === order.item);
  const live = isLive(order);
  const unpaid = order.status === "confirmed" || order.status === "reserved";
  const time = useCell(now);
  const payable = order.pay_by !== undefined && order.pay_by > time;
  return (
    <section class={live ? "card good" : "card"}>
      {live && (
        <svg class="tick" viewBox="0 0 48 48" aria-hidden="true">
          <circle cx="24" cy="24" r="22" />
          <path d="M14 25l7 7 13-15" />
        </svg>
      )}
      <h1>{orderHead(view, t)}</h1>
      <p class="more">{more(view, state.payment === "demo")}</p>
      {unpaid && order.pay_by !== undefined && (
        <>
          <p class="label">{payable ? t.payBy : t.payOver}</p>
          {payable && (
            <p class="big">
              <Countdown until={order.pay_by} />
            </p>
          )}
        </>
      )}
      <dl class="facts">
        <Fact name={t.item}>{f.text(item?.title, order.item)}</Fact>
        <Fact name={t.quantity}>{f.number(order.qty)}</Fact>
        {item?.price && sale?.currency && <Fact name={t.total2}>{f.price(item.price * order.qty, sale.currency)}</Fact>}
      </dl>
      <p class="orderId">
        {t.order} <code>{order.id}</code>
      </p>
      {order.status === "confirmed" && (
        <div class="row">
          {payable && state.payment === "demo" && (
            <button type="button" class="button" disabled={!!state.changing} onClick={() => actions.pay()}>
              {state.changing === "pay" ? t.paying : t.pay}
            </button>
          )}
          {state.changing === "cancel" ? (
            <p class="label">{t.cancelling}</p>
          ) : (
            !state.changing && (
              <Ask
                id="cancel"
                label={t.cancel}
                title={t.cancelAsk}
                more={t.cancelAskMore}
                yes={t.cancel}
                no={t.cancelNo}
                run={() => actions.cancel()}
              />
            )
          )}
        </div>
      )}
      {!live && sale?.state !== "closed" && (
        <button type="button" class="button" onClick={() => actions.join()}>
          {t.rejoin}
        </button>
      )}
    </section>
  );
}

function more(view: View & { name: "order" }, here: boolean): string {
  const { t } = language.value;
  const { order, already } = view;
  switch (order.status) {
    case "reserved":
      return already ? t.alreadyMore : t.successMore;
    case "confirmed":
      return (
        (already ? `${t.alreadyMore} ` : "") +
        (!order.pay_by ? t.confirmedMore : here ? t.confirmedHere : t.confirmedPay)
      );
    case "paid":
      return t.paidMore;
    default:
      return t.endedMore[order.status];
  }
}
