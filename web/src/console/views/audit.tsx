import { language } from "../lang/index.ts";
import type { Audit } from "../types.ts";
import { Panel } from "./parts.tsx";

const OLD_MS = 60_000; // it runs every ten seconds, and takes a while for a large sale
const SHOWN = 5;

/** Whether the stores agree, and what does not add up if they do not. */
export function AuditPanel({ audit, now }: { audit: Audit | null; now: number }) {
  const { t, f } = language.value;
  if (!audit) {
    return (
      <Panel title={t.audit} class="audit">
        <p class="soft">{t.auditNone}</p>
      </Panel>
    );
  }
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
      {now - audit.at > OLD_MS && <p class="banner warn">{t.auditOld}</p>}
      {(off.length > 0 || problems.length > 0) && (
        <ul class="problems">
          {off.map(([item, units]) => (
            <li key={item}>{t.imbalance(item, units, f.number(units))}</li>
          ))}
          {problems.slice(0, SHOWN).map((problem) => (
            <li key={problem}>{problem}</li>
          ))}
          {more > 0 && <li>{t.moreProblems(f.number(more))}</li>}
        </ul>
      )}
    </Panel>
  );
}
