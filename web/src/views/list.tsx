import { useEffect, useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import type { Clock } from "../clock.ts";
import { language } from "../lang/index.ts";
import type { Sale } from "../protocol.ts";
import { now } from "../ticker.ts";
import { useTitle } from "../title.ts";
import { Message } from "./frame.tsx";
import { Countdown } from "./parts.tsx";

const EVERY_MS = 5_000;
const order = { open: 0, paused: 1, recovering: 1, lobby: 2, scheduled: 3, closed: 4 };

/** All sales, those one can act on first. Read again every few seconds while somebody looks. */
export function SaleList({ clock }: { clock: Clock }) {
  const [sales, setSales] = useState<Sale[]>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const read = async () => {
      clearTimeout(timer);
      if (document.visibilityState === "visible") {
        try {
          const answer = await fetch("/api/v1/sales");
          if (!answer.ok) throw new Error(String(answer.status));
          const { sales, server_time } = await answer.json();
          clock.sample(server_time);
          setSales(sales);
          setFailed(false);
        } catch {
          setFailed(true);
        }
      }
      timer = setTimeout(read, EVERY_MS * (0.8 + 0.4 * Math.random()));
    };
    void read();
    document.addEventListener("visibilitychange", read);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", read);
    };
  }, [clock]);
  return <Sales sales={sales} failed={failed} />;
}

export function Sales({ sales, failed }: { sales: Sale[] | undefined; failed: boolean }) {
  const { t } = language.value;
  useTitle(t.sales);
  if (!sales) return failed ? <Message title={t.salesFailed} /> : <Message title={t.connecting} tone="busy" />;
  if (sales.length === 0) return <Message title={t.noSales} more={t.noSalesMore} />;
  const sorted = [...sales].sort((a, b) => order[a.state] - order[b.state] || a.opens_at - b.opens_at);
  return (
    <section class="sales">
      <h1>{t.sales}</h1>
      {failed && (
        <p class="banner" role="status">
          {t.salesFailed}
        </p>
      )}
      <ul>
        {sorted.map((sale) => (
          <SaleCard key={sale.id} sale={sale} />
        ))}
      </ul>
    </section>
  );
}

function SaleCard({ sale }: { sale: Sale }) {
  const { t, f } = language.value;
  const time = useCell(now);
  const ended = sale.state === "closed";
  const chip = !ended && sale.stock !== "available" ? sale.stock : sale.state;
  const before = sale.state === "scheduled" || sale.state === "lobby";
  const total = sale.items.reduce((sum, item) => sum + item.total, 0);
  const prices = sale.items.flatMap((item) => (item.price ? [item.price] : []));
  const least = Math.min(...prices);
  const price = prices.length > 0 && sale.currency ? f.price(least, sale.currency) : undefined;
  return (
    <li>
      <a class={ended ? "card sale ended" : "card sale"} href={`/s/${sale.id}`}>
        <span class={`chip ${chip}`}>{t.state[chip]}</span>
        <h2>{f.text(sale.title, sale.id)}</h2>
        <p class="more">
          {t.units(total, f.number(total))}
          {price && ` · ${Math.max(...prices) > least ? t.from(price) : price}`}
          {!ended && sale.waiting > 0 && ` · ${t.inLine(sale.waiting, f.number(sale.waiting))}`}
        </p>
        {before && (
          <p class="when">
            <span>{t.opens(f.moment(sale.opens_at, time))}</span>
            <Countdown until={sale.opens_at} />
          </p>
        )}
        {(sale.state === "open" || sale.state === "paused") && (
          <p class="when">{t.closesAt(f.moment(sale.closes_at, time))}</p>
        )}
      </a>
    </li>
  );
}
