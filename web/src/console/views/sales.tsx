import { useComputed, useSignal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { Clock } from "../../clock.ts";
import { useTitle } from "../../title.ts";
import { type Problem, problemOf } from "../api.ts";
import { language } from "../lang/index.ts";
import type { Session } from "../session.ts";
import { now } from "../ticking.ts";
import type { Sale } from "../types.ts";
import { Bar, Chips, ProblemLine, Scroll, useEvery, useTicking } from "./parts.tsx";
import { takenOf, titleOf } from "./words.ts";

const EVERY_MS = 3_000;
const OLD_MS = 8_000;
const order = { recovering: 0, open: 1, paused: 1, lobby: 2, scheduled: 3, closed: 4 };

/** All sales, read again every few seconds. */
export function SalesPage({ session }: { session: Session }) {
  const [sales, setSales] = useState<Sale[]>();
  const [incomplete, setIncomplete] = useState(false); // the database is away
  const [problem, setProblem] = useState<Problem>();
  const readAt = useSignal<number | undefined>(undefined);
  const clock = useMemo(() => new Clock(), []); // of this device: nothing is told but how old the list is
  useTicking(clock);
  const read = async () => {
    try {
      const list = await session.api.sales();
      setSales(list.sales);
      setIncomplete(list.incomplete !== undefined);
      readAt.value = clock.now();
      setProblem(undefined);
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  useEvery(EVERY_MS, read, session);
  // Whole seconds, and only those that are shown, or the whole list would be drawn again with every tick.
  const age = useComputed(() => {
    const ms = readAt.value === undefined ? 0 : now.value - readAt.value;
    return ms > OLD_MS ? Math.ceil(ms / 1000) * 1000 : 0;
  });
  return <SalesView sales={sales} incomplete={incomplete} problem={problem} age={age.value} />;
}

export function SalesView(props: {
  sales: Sale[] | undefined;
  incomplete?: boolean; // there may be others
  problem?: Problem | undefined;
  age: number;
}) {
  const { t, f } = language.value;
  const { sales, incomplete, problem, age } = props;
  useTitle(`${t.sales} · ${t.console}`);
  return (
    <div class={age > OLD_MS ? "page stale" : "page"}>
      <div class="page-head">
        <h1>{t.sales}</h1>
        <span class="row">
          <a class="button second" href="#archived">
            {t.archivedSales}
          </a>
          <a class="button" href="#new">
            {t.newSale}
          </a>
        </span>
      </div>
      {age > OLD_MS && <p class="banner warn">{t.oldList(f.span(age))}</p>}
      {incomplete && <p class="banner">{t.fromRedis}</p>}
      <ProblemLine problem={problem} />
      {!sales && !problem && <p class="soft">{t.loading}</p>}
      {sales?.length === 0 && (
        <section class="panel empty">
          <h2>{t.noSales}</h2>
          <p class="soft">{t.noSalesMore}</p>
        </section>
      )}
      {sales && sales.length > 0 && <SalesTable sales={sales} />}
    </div>
  );
}

function SalesTable({ sales }: { sales: Sale[] }) {
  const { t } = language.value;
  const rank = (sale: Sale) => (sale.state ? order[sale.state] : 3);
  const sorted = [...sales].sort(
    (a, b) => rank(a) - rank(b) || Date.parse(a.opens_at) - Date.parse(b.opens_at) || (a.id < b.id ? -1 : 1),
  );
  return (
    <Scroll label={t.sales}>
      <table class="sales">
        <thead>
          <tr>
            <th scope="col">{t.column.sale}</th>
            <th scope="col">{t.column.state}</th>
            <th scope="col" class="n">
              {t.column.waiting}
            </th>
            <th scope="col" class="n">
              {t.column.rate}
            </th>
            <th scope="col">{t.column.taken}</th>
            <th scope="col">{t.column.opens}</th>
            <th scope="col">{t.column.closes}</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((sale) => (
            <Row key={sale.id} sale={sale} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Row({ sale }: { sale: Sale }) {
  const { t, f } = language.value;
  const { taken, total } = takenOf(sale);
  return (
    <tr class={sale.state === "closed" ? "ended" : ""}>
      <th scope="row">
        <a href={`/admin/s/${sale.id}`}>{titleOf(sale, language.value)}</a>
        <code>{sale.id}</code>
      </th>
      <td>
        <Chips sale={sale} />
      </td>
      <td class="n">{f.count(sale.waiting)}</td>
      <td class="n">{f.rate(sale.rate)}</td>
      <td class="taken">
        <span class="digits">{t.ofTotal(f.count(taken), f.number(total))}</span>
        <Bar value={taken === undefined || total === 0 ? 0 : taken / total} />
      </td>
      <td class="when">{f.when(Date.parse(sale.opens_at), false)}</td>
      <td class="when">{f.when(Date.parse(sale.closes_at), false)}</td>
    </tr>
  );
}
