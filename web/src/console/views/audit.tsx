import { language } from "../lang/index.ts";
import type { Audit, SaleState } from "../types.ts";
import { Panel } from "./parts.tsx";

const EVERY_MS = 10_000;
const CLOSED_EVERY_MS = 300_000; // once everything of a closed sale is settled
const SLACK_MS = 60_000; // it takes a while for a large sale
const SHOWN = 5;

/** Whether the stores agree, and what does not add up if they do not. */
export function AuditPanel(props: { audit: Audit | null; now: number; state: SaleState | undefined }) {
  const { t, f } = language.value;
  const { audit, now, state } = props;
  if (!audit) {
    // While stock is given away somebody has to know whether it adds up.
    const due = state === "open" || state === "paused";
    return (
      <Panel title={t.audit} class="audit">
        {due ? <p class="banner warn">{t.auditUnknown}</p> : <p class="soft">{t.auditNone}</p>}
      </Panel>
    );
  }
  const every = state === "closed" ? CLOSED_EVERY_MS : EVERY_MS;
  const off = Object.entries(audit.imbalance ?? {}).filter(([, units]) => units !== 0);
  const problems = audit.problems ?? [];
  const more = problems.length - SHOWN;
  return (
    <Panel
      title={t.audit}
      class={audit.balanced ? "audit" : "audit wrong"}
      aside={<span class="soft digits">{t.auditAt(f.time(audit.at), f.span(now - audit.at))}</span>}
    >
      <p class="verdict" role="status">
        <strong>{audit.balanced ? t.balanced : t.unbalanced}</strong>
      </p>
      {audit.balanced && <p class="soft">{t.balancedMore}</p>}
      {now - audit.at > every + SLACK_MS && <p class="banner warn">{t.auditOld(f.span(every))}</p>}
      {(off.length > 0 || problems.length > 0) && (
        <ul class="problems">
          {off.map(([item, units]) => (
            <li key={item}>{t.imbalance(item, units, f.number(units))}</li>
          ))}
          {problems.slice(0, SHOWN).map((problem) => (
            <li key={problem} lang="en">
              {problem}
            </li>
          ))}
          {more > 0 && <li>{t.moreProblems(f.number(more))}</li>}
        </ul>
      )}
    </Panel>
  );
}
