import { useEffect, useMemo, useState } from "preact/hooks";
import { useTitle } from "../../title.ts";
import { act } from "../act.ts";
import type { Control } from "../controls.ts";
import { language } from "../lang/index.ts";
import { Live } from "../live.ts";
import { ChangeLog } from "../log.ts";
import type { SalePart } from "../route.ts";
import type { Session } from "../session.ts";
import { ArchiveView } from "./archived.tsx";
import { Controls } from "./controls.tsx";
import { LiveView } from "./live.tsx";
import { OrdersView } from "./orders.tsx";
import { Announce, useEvery, useTicking } from "./parts.tsx";
import { SaleHead } from "./sale-head.tsx";
import { SettingsPage } from "./settings.tsx";
import { titleOf } from "./words.ts";

const LOG_EVERY_MS = 15_000;

/** One sale: what is going on, its orders, its settings. The figures go on whichever part is shown. */
export function SalePage({ session, id, part }: { session: Session; id: string; part: SalePart }) {
  const { t, f } = language.value;
  const { api } = session;
  const live = useMemo(() => new Live(api, id), [api, id]);
  const log = useMemo(() => new ChangeLog(api, id), [api, id]);
  const [done, setDone] = useState<Control>();
  useEffect(() => {
    live.start();
    return () => live.stop();
  }, [live]);
  useTicking(live.clock);
  useEvery(LOG_EVERY_MS, () => log.refresh(), log);
  // A stream that comes anew may come from a server that was started anew, with other limits.
  const node = live.frame.value?.node;
  const open = live.link.value === "open";
  useEffect(() => {
    if (open && node) void session.introduce();
  }, [session, open, node]);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(undefined), 8_000);
    return () => clearTimeout(timer);
  }, [done]);

  const frame = live.frame.value;
  const sale = live.sale.value;
  const name = sale ? titleOf(sale, language.value) : id;
  const waiting = frame?.line ? `${f.count(frame.line.waiting)} · ` : "";
  useTitle(`${sale?.state ? `${t.state[sale.state]} · ` : ""}${waiting}${name} · ${t.console}`);
  if (live.gone.value) return <h1 class="nowhere">{t.noSuchSale(id)}</h1>;
  return (
    <div class="page">
      <SaleHead id={id} name={name} sale={sale} part={part} live={live}>
        {sale && !sale.archived && part !== "settings" && (
          <Controls
            sale={sale}
            log={log.entries.value}
            more={log.more.value}
            act={async (control, asked, fields) => {
              if (!(await act(api, asked, control, fields))) return;
              setDone(control);
              void log.refresh();
            }}
          />
        )}
      </SaleHead>
      <p class={done ? "banner good" : "sr"} role="status">
        {done && t.done[done]}
      </p>
      {sale?.archived && part !== "orders" && <ArchiveView archive={sale.archived} sale={sale} log={log} />}
      {!sale?.archived && part === "live" && <LiveView live={live} log={log} about={session.about.value} />}
      {part === "orders" && <OrdersView api={api} id={id} sale={sale} />}
      {part === "settings" && sale && !sale.archived && (
        <SettingsPage key={id} api={api} sale={sale} onSaved={() => void log.refresh()} />
      )}
      <Announce text={sale?.state ? `${name}: ${t.state[sale.state]}` : ""} />
    </div>
  );
}
