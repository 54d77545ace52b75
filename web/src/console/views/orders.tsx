import { useEffect, useRef, useState } from "preact/hooks";
import { type Api, type Problem, problemOf } from "../api.ts";
import { language } from "../lang/index.ts";
import type { OrderRow, OrderStatus, Sale } from "../types.ts";
import { ProblemLine, Scroll } from "./parts.tsx";
import { itemTitle } from "./words.ts";

const PAGE = 50;
const REST_MS = 300; // typing has to rest for so long before the server is asked
// An order that is reserved only is not written yet, so it is never found.
const statuses: OrderStatus[] = ["confirmed", "paid", "cancelled", "expired", "rejected"];

/** The orders of a sale, newest first. */
export function OrdersView({
  api,
  id,
  sale,
}: {
  api: Pick<Api, "orders" | "csv">;
  id: string;
  sale: Sale | undefined;
}) {
  const { t, f } = language.value;
  const [q, setQ] = useState("");
  const [status, setStatus] = useState("");
  const [pages, setPages] = useState<string[]>([""]); // where each page begins, up to the one that is shown
  const [round, setRound] = useState(0);
  const [found, setFound] = useState<{ orders: OrderRow[]; next: string }>();
  const [problem, setProblem] = useState<Problem>();
  const before = pages.at(-1) ?? "";
  const typed = useRef(0);

  // Another round asks for the same again.
  useEffect(() => {
    const asking = new AbortController();
    const rest = Math.max(0, typed.current + REST_MS - Date.now());
    const timer = setTimeout(async () => {
      try {
        setFound(await api.orders(id, { q: q.trim(), status, before, limit: PAGE }, asking.signal));
        setProblem(undefined);
      } catch (error) {
        if (!asking.signal.aborted) setProblem(problemOf(error));
      }
    }, rest);
    return () => {
      clearTimeout(timer);
      asking.abort();
    };
  }, [api, id, q, status, before, round]);

  const narrow = q.trim() !== "" || status !== "";
  return (
    <section class="orders" aria-label={t.orders}>
      <search class="filters">
        <label class="field">
          <span>{t.order.search}</span>
          <input
            type="search"
            value={q}
            placeholder={t.order.searchHint}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => {
              typed.current = Date.now();
              setQ(event.currentTarget.value);
              setPages([""]);
            }}
          />
        </label>
        <label class="field">
          <span>{t.order.status}</span>
          <select
            value={status}
            onChange={(event) => {
              setStatus(event.currentTarget.value);
              setPages([""]);
            }}
          >
            <option value="">{t.order.any}</option>
            {statuses.map((status) => (
              <option key={status} value={status}>
                {t.status[status]}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="button second" onClick={() => setRound(round + 1)}>
          {t.order.reload}
        </button>
        <Download api={api} id={id} onProblem={setProblem} />
      </search>
      <ProblemLine problem={problem} />
      {!found && !problem && <p class="soft">{t.loading}</p>}
      {found?.orders.length === 0 && <p class="panel empty">{narrow ? t.order.noneFound : t.order.none}</p>}
      {found && found.orders.length > 0 && <Table orders={found.orders} sale={sale} />}
      {found && <p class="soft">{t.order.unwritten}</p>}
      {found && (pages.length > 1 || found.next) && (
        <nav class="row pages" aria-label={t.orders}>
          <button
            type="button"
            class="button second small"
            disabled={pages.length === 1}
            onClick={() => setPages(pages.slice(0, -1))}
          >
            {t.newer}
          </button>
          <span class="soft" role="status">
            {t.order.page(f.number(pages.length))}
          </span>
          <button
            type="button"
            class="button second small"
            disabled={!found.next}
            onClick={() => setPages([...pages, found.next])}
          >
            {t.older}
          </button>
        </nav>
      )}
    </section>
  );
}

function Table({ orders, sale }: { orders: OrderRow[]; sale: Sale | undefined }) {
  const { t, f } = language.value;
  const when = (at: number | undefined) => (at === undefined ? "–" : f.when(at));
  return (
    <Scroll label={t.orders}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t.order.id}</th>
            <th scope="col">{t.order.status}</th>
            <th scope="col">{t.order.item}</th>
            <th scope="col" class="n">
              {t.order.qty}
            </th>
            <th scope="col">{t.order.user}</th>
            <th scope="col">{t.order.created}</th>
            <th scope="col">{t.order.payBy}</th>
            <th scope="col">{t.order.paid}</th>
          </tr>
        </thead>
        <tbody>
          {orders.map((order) => (
            <tr key={order.id}>
              <th scope="row">
                <code>{order.id}</code>
              </th>
              <td>
                <span class={`chip ${order.status}`}>{t.status[order.status] ?? order.status}</span>
              </td>
              <td>{sale ? itemTitle(sale, order.item, language.value) : order.item}</td>
              <td class="n">{f.number(order.qty)}</td>
              <td class="user">{order.user}</td>
              <td class="when">{when(order.created_at)}</td>
              <td class="when">{when(order.pay_by)}</td>
              <td class="when">{when(order.paid_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** A link could not send the token, so the file is fetched and then handed to the browser. */
function Download(props: { api: Pick<Api, "csv">; id: string; onProblem: (problem: Problem | undefined) => void }) {
  const { t } = language.value;
  const [busy, setBusy] = useState(false);
  const download = async () => {
    setBusy(true);
    props.onProblem(undefined);
    try {
      const url = URL.createObjectURL(await props.api.csv(props.id));
      const link = document.createElement("a");
      link.href = url;
      link.download = `${props.id}-orders.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser may begin to read it later
    } catch (error) {
      props.onProblem(problemOf(error));
    }
    setBusy(false);
  };
  return (
    <button type="button" class="button second" disabled={busy} onClick={() => void download()}>
      {busy ? t.order.csvBusy : t.order.csv}
    </button>
  );
}
