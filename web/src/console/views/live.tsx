import { language } from "../lang/index.ts";
import type { Live } from "../live.ts";
import type { ChangeLog } from "../log.ts";
import type { About } from "../types.ts";
import { AuditPanel } from "./audit.tsx";
import { Charts } from "./charts.tsx";
import { FiguresRow } from "./figures-row.tsx";
import { LimitsPanel } from "./limits.tsx";
import { LogPanel } from "./log.tsx";
import { NodesPanel } from "./nodes.tsx";
import { StockPanel } from "./stock.tsx";
import { WayPanel } from "./way.tsx";
import { troubleWords } from "./words.ts";

/** The view for the wall. */
export function LiveView({ live, log, about }: { live: Live; log: ChangeLog; about: About | undefined }) {
  const { t } = language.value;
  const frame = live.frame.value;
  const sale = live.sale.value;
  if (!frame) return null;
  return (
    <div class={live.stale.value ? "wall stale" : "wall"}>
      {frame.troubles.length > 0 && (
        <div class="banner alert troubles" role="status">
          <strong>{t.troubles}</strong>
          <ul>
            {frame.troubles.map((trouble) => (
              <Trouble key={trouble} sentence={trouble} />
            ))}
          </ul>
        </div>
      )}
      {sale && (
        <>
          <FiguresRow frame={frame} sale={sale} admitted={live.history.admitted} />
          <Charts at={frame.at} sale={sale} history={live.history} />
          <div class="side">
            <AuditPanel audit={frame.audit} now={frame.at} state={sale.state} />
            <WayPanel orders={frame.orders} brokerPage={about?.broker_ui_url} />
            <StockPanel sale={sale} />
            <NodesPanel nodes={frame.nodes} now={frame.at} heard={(node) => live.history.heard(node)} />
          </div>
          <div class="below">
            <LimitsPanel limits={about?.limits} nodes={frame.nodes} rates={live.history.rates} />
            <LogPanel log={log} sale={sale} />
          </div>
        </>
      )}
    </div>
  );
}

/** What cannot be read, in the language of the console where it knows the sentence. */
function Trouble({ sentence }: { sentence: string }) {
  const words = troubleWords(sentence, language.value);
  return words === undefined ? <li lang="en">{sentence}</li> : <li>{words}</li>;
}
