import { useState } from "preact/hooks";
import { useTitle } from "../../title.ts";
import { type Problem, problemOf } from "../api.ts";
import { language } from "../lang/index.ts";
import type { ChangeLog } from "../log.ts";
import type { Session } from "../session.ts";
import type { Archive, Sale } from "../types.ts";
import { LogPanel } from "./log.tsx";
import { Panel, ProblemLine, Scroll, useEvery } from "./parts.tsx";
import { itemTitle, titleOf } from "./words.ts";

const EVERY_MS = 15_000;

/** All sales that were archived, the newest first. */
export function ArchivedPage({ session }: { session: Session }) {
  const [sales, setSales] = useState<Sale[]>();
  const [problem, setProblem] = useState<Problem>();
  const read = async () => {
    try {
      setSales(await session.api.archived());
      setProblem(undefined);
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  useEvery(EVERY_MS, read, session);
  return <ArchivedView sales={sales} problem={problem} />;
}

export function ArchivedView({ sales, problem }: { sales: Sale[] | undefined; problem?: Problem | undefined }) {
  const { t } = language.value;
  useTitle(`${t.archivedSales} · ${t.console}`);
  return (
    <div class="page">
      <div class="page-head">
        <h1>{t.archivedSales}</h1>
        <a class="button second" href="/admin">
          {t.currentSales}
        </a>
      </div>
      <ProblemLine problem={problem} />
      {!sales && !problem && <p class="soft">{t.loading}</p>}
      {sales?.length === 0 && (
        <section class="panel empty">
          <h2>{t.noArchived}</h2>
          <p class="soft">{t.noArchivedMore}</p>
        </section>
      )}
      {sales && sales.length > 0 && <ArchivedTable sales={sales} />}
    </div>
  );
}

function ArchivedTable({ sales }: { sales: Sale[] }) {
  const { t, f } = language.value;
  const sorted = [...sales].sort((a, b) => (b.archived?.at ?? 0) - (a.archived?.at ?? 0) || (a.id < b.id ? -1 : 1));
  return (
    <Scroll label={t.archivedSales}>
      <table class="sales">
        <thead>
          <tr>
            <th scope="col">{t.column.sale}</th>
            <th scope="col">{t.archive.sold}</th>
            <th scope="col">{t.column.opens}</th>
            <th scope="col">{t.column.closes}</th>
            <th scope="col">{t.archive.at}</th>
            <th scope="col">{t.archive.users}</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((sale) => (
            <tr key={sale.id} class="ended">
              <th scope="row">
                <a href={`/admin/s/${sale.id}`}>{titleOf(sale, language.value)}</a>
                <code>{sale.id}</code>
              </th>
              <td class="digits">{sale.archived && soldWords(sale.archived)}</td>
              <td class="when">{f.when(Date.parse(sale.opens_at), false)}</td>
              <td class="when">{f.when(Date.parse(sale.closes_at), false)}</td>
              <td class="when">{sale.archived && f.when(sale.archived.at, false)}</td>
              <td>{sale.archived && usersWords(sale.archived)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** One archived sale, in place of its live figures. */
export function ArchiveView({ archive, sale, log }: { archive: Archive; sale: Sale; log: ChangeLog }) {
  const { t, f } = language.value;
  return (
    <div class="below past">
      <Panel title={t.archive.title} class="archived">
        <p class="soft">{archive.done ? t.archive.more : t.archive.ending}</p>
        <dl class="facts">
          <dt>{t.archive.at}</dt>
          <dd>{f.when(archive.at)}</dd>
          <dt>{t.archive.users}</dt>
          <dd>{usersWords(archive)}</dd>
          <dt>{t.archive.audit}</dt>
          <dd>{archive.audit.balanced ? t.balanced : t.unbalanced}</dd>
          {archive.audit.items.map(({ item, sold, total }) => (
            <Item key={item} name={itemTitle(sale, item, language.value)} sold={sold} total={total} />
          ))}
        </dl>
      </Panel>
      <LogPanel log={log} sale={sale} />
    </div>
  );
}

function Item({ name, sold, total }: { name: string; sold: number; total: number }) {
  const { t, f } = language.value;
  return (
    <>
      <dt>{name}</dt>
      <dd>{t.archive.soldOf(f.number(sold), f.number(total))}</dd>
    </>
  );
}

function soldWords({ audit }: Archive): string {
  const { t, f } = language.value;
  const sum = (of: "sold" | "total") => audit.items.reduce((n, item) => n + item[of], 0);
  return t.ofTotal(f.number(sum("sold")), f.number(sum("total")));
}

function usersWords({ purge, purged }: Archive): string {
  const { t, f } = language.value;
  if (purged) return t.archive.purged(f.when(purged));
  return purge ? t.archive.purging : t.archive.kept;
}
