import { language } from "../lang/index.ts";
import { isLive, type Sale } from "../protocol.ts";
import type { View } from "../state.ts";
import { now } from "../ticker.ts";
import { Countdown, Fact } from "./parts.tsx";
import { orderHead } from "./words.ts";

/** What was bought, and how far it is on its way. */
export function OrderView(props: { view: View & { name: "order" }; sale: Sale | undefined; onJoin: () => void }) {
  const { t, f } = language.value;
  const { view, sale } = props;
  const { order } = view;
  const item = sale?.items.find(({ id }) => id === order.item);
  const live = isLive(order);
  const unpaid = order.status === "confirmed" || order.status === "reserved";
  return (
    <section class={live ? "card good" : "card"}>
      {live && (
        <svg class="tick" viewBox="0 0 48 48" aria-hidden="true">
          <circle cx="24" cy="24" r="22" />
          <path d="M14 25l7 7 13-15" />
        </svg>
      )}
      <h1>{orderHead(view, t)}</h1>
      <p class="more">{more(view)}</p>
      {unpaid && order.pay_by !== undefined && (
        <>
          <p class="label">{order.pay_by > now.value ? t.payBy : t.payOver}</p>
          {order.pay_by > now.value && (
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
      {!live && sale?.state !== "closed" && (
        <button type="button" class="button" onClick={props.onJoin}>
          {t.rejoin}
        </button>
      )}
    </section>
  );
}

function more(view: View & { name: "order" }): string {
  const { t } = language.value;
  const { order, already } = view;
  switch (order.status) {
    case "reserved":
      return already ? t.alreadyMore : t.successMore;
    case "confirmed":
      return (already ? `${t.alreadyMore} ` : "") + (order.pay_by ? t.confirmedPay : t.confirmedMore);
    case "paid":
      return t.paidMore;
    default:
      return t.endedMore[order.status];
  }
}
