import { language } from "../lang/index.ts";
import type { OrderFigures } from "../types.ts";
import { Panel } from "./parts.tsx";

/** Where orders are between the grab and the database. */
export function WayPanel({ orders, brokerPage }: { orders: OrderFigures; brokerPage: string | undefined }) {
  const { t, f } = language.value;
  const { taken, written, outbox, broker, dead } = orders;
  const under = taken !== null && written !== null ? Math.max(0, taken - written) : undefined;
  const steps = [
    { name: t.wayTaken, value: taken, more: t.wayTakenMore },
    { name: t.wayOutbox, value: outbox, more: t.wayOutboxMore },
    { name: t.wayBroker, value: broker, more: broker === null ? t.wayNoBroker : t.wayBrokerMore },
    { name: t.wayWritten, value: written, more: t.wayWrittenMore },
  ];
  return (
    <Panel
      title={t.way}
      class="way"
      aside={
        under !== undefined && <span class="soft">{under === 0 ? t.wayDone : t.wayDelay(under, f.number(under))}</span>
      }
    >
      <ol>
        {steps.map(({ name, value, more }) => (
          <li key={name}>
            <span class="name">{name}</span>
            <b class="digits">{f.count(value)}</b>
            <span class="soft">{more}</span>
          </li>
        ))}
      </ol>
      {dead !== null && dead > 0 ? (
        <p class="banner alert" role="status">
          <strong>{t.wayDead(dead, f.number(dead))}</strong> {t.wayDeadMore}
        </p>
      ) : (
        dead !== null && <p class="soft ok">{t.wayNoDead}</p>
      )}
      {brokerPage && safe(brokerPage) && (
        <p>
          <a href={brokerPage} target="_blank" rel="noreferrer">
            {t.brokerPage}
          </a>
        </p>
      )}
    </Panel>
  );
}

/** A setting of the server, but only addresses of pages are followed. */
function safe(address: string): boolean {
  return /^https?:\/\//.test(address);
}
