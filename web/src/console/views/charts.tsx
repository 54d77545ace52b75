import type { History } from "../history.ts";
import { language } from "../lang/index.ts";
import { type Result, results, type Sale } from "../types.ts";
import { Chart, type Series } from "./chart.tsx";
import { itemTitle } from "./words.ts";

const MOST_ITEMS = 6; // more lines than that tell nobody anything
const tones: Record<Result, number> = { success: 2, already: 5, sold_out: 3, no_turn: 6, not_open: 7, failed: 4 };

/** What has happened over the last minutes. */
export function Charts({ at, sale, history }: { at: number; sale: Sale; history: History }) {
  const { t, f } = language.value;
  const count = (n: number) => f.count(n);
  const rate = (n: number) => t.perSecond(f.rate(n));
  const items = [...sale.items].sort((a, b) => b.stock - a.stock).slice(0, MOST_ITEMS);
  return (
    <div class="charts">
      <Chart
        title={t.chart.waiting}
        history={history}
        at={at}
        write={count}
        series={[{ column: "waiting", name: t.chart.waiting, tone: 1, filled: true }]}
      />
      <Chart title={t.chart.flow} history={history} at={at} write={rate} series={flow(history)} />
      <Chart
        title={t.chart.stock}
        {...(items.length < sale.items.length && {
          note: t.chart.some(f.number(items.length), f.number(sale.items.length)),
        })}
        history={history}
        at={at}
        write={count}
        series={items.map(({ id }, i) => ({
          column: `item ${id}`,
          name: itemTitle(sale, id, language.value),
          tone: i + 1,
          dashed: i % 2 === 1,
        }))}
      />
      <Chart title={t.chart.way} history={history} at={at} write={count} series={way(history)} />
    </div>
  );
}

/** Turns given and the ends of grabs; those that did not happen are left out. */
function flow(history: History): Series[] {
  const { t } = language.value;
  const seen = results.filter((result) => result === "success" || (history.peak(`grabs ${result}`) ?? 0) > 0);
  return [
    { column: "admitted", name: t.chart.admitted, tone: 1, dashed: true },
    ...seen.map((result) => ({ column: `grabs ${result}`, name: t.grab[result], tone: tones[result] })),
  ];
}

function way(history: History): Series[] {
  const { t } = language.value;
  const all: Series[] = [
    { column: "under_way", name: t.chart.under_way, tone: 1, filled: true },
    { column: "outbox", name: t.chart.outbox, tone: 2 },
    { column: "broker", name: t.chart.broker, tone: 3, dashed: true },
  ];
  return all.filter(({ column }) => column === "under_way" || history.peak(column) !== undefined);
}
