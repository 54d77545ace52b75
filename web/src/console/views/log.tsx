import { type Difference, differences } from "../diff.ts";
import { language } from "../lang/index.ts";
import type { ChangeLog } from "../log.ts";
import type { LogEntry, SaleFile } from "../types.ts";
import { Panel, ProblemLine } from "./parts.tsx";
import { fieldWords, valueWords } from "./words.ts";

/** Who changed what, and when, newest first. */
export function LogPanel({ log, sale }: { log: ChangeLog; sale: SaleFile }) {
  const { t } = language.value;
  const entries = log.entries.value;
  return (
    <Panel title={t.log} class="log">
      <ProblemLine problem={log.problem.value} />
      {!entries && !log.problem.value && <p class="soft">{t.loading}</p>}
      {entries?.length === 0 && <p class="soft">{t.logNone}</p>}
      {entries && entries.length > 0 && (
        <ol>
          {entries.map((entry) => (
            <Entry key={entry.id} entry={entry} currency={sale.currency} />
          ))}
        </ol>
      )}
      {log.more.value && (
        <button type="button" class="button second small" onClick={() => void log.older()}>
          {t.older}
        </button>
      )}
    </Panel>
  );
}

function Entry({ entry, currency }: { entry: LogEntry; currency: string | undefined }) {
  const { t, f } = language.value;
  const { before, after } = entry;
  return (
    <li>
      <time class="soft digits" dateTime={new Date(entry.at).toISOString()} title={f.dateTime(entry.at)}>
        {f.when(entry.at)}
      </time>
      <span class="action">
        <strong>{t.action[entry.action] ?? entry.action}</strong> <span class="soft">{entry.who}</span>
      </span>
      {before && after && <Differences list={differences(before, after)} currency={after.currency ?? currency} />}
      {!before && after && <span class="soft">{made(after)}</span>}
      {before && !after && <span class="soft">{t.removed}</span>}
    </li>
  );
}

function made(sale: SaleFile): string {
  const { t, f } = language.value;
  const units = sale.items.reduce((sum, { stock }) => sum + stock, 0);
  return t.made(sale.items.length, f.number(sale.items.length), f.number(units));
}

/** Each field that differs, before and after. */
export function Differences({ list, currency }: { list: Difference[]; currency: string | undefined }) {
  const { t } = language.value;
  if (list.length === 0) return null;
  return (
    <ul class="differences">
      {list.map((difference) => {
        const { field, item, language: tag, before, after } = difference;
        return (
          <li key={`${field} ${item} ${tag}`}>
            <span class="name">{fieldWords(difference, language.value)}</span> <span class="sr">{t.was} </span>
            <del>{valueWords(field, before, currency, language.value)}</del> <span class="arrow" aria-hidden="true" />{" "}
            <span class="sr">{t.becomes} </span>
            <ins>{valueWords(field, after, currency, language.value)}</ins>
          </li>
        );
      })}
    </ul>
  );
}
