import type { ComponentChildren } from "preact";
import { language } from "../lang/index.ts";
import type { LiveFrame, Sale } from "../types.ts";
import { Bar } from "./parts.tsx";
import { takenOf } from "./words.ts";

/** The figures that are read from across the room. */
export function FiguresRow({ frame, sale, admitted }: { frame: LiveFrame; sale: Sale; admitted: number | undefined }) {
  const { t, f } = language.value;
  const { line, nodes } = frame;
  const { taken, total } = takenOf(sale);
  const part = taken === undefined || total === 0 ? undefined : taken / total;
  const connections = nodes.reduce((sum, node) => sum + node.connections, 0);
  const shoppers = nodes.reduce((sum, node) => sum + node.shoppers, 0);
  const noLine = sale.line.order === "off";
  return (
    <dl class="figures">
      <Figure name={t.waiting} value={f.count(line?.waiting)} main>
        {noLine ? t.noLine : line && line.recalled > 0 ? t.recalled(f.count(line.recalled)) : ""}
      </Figure>
      <Figure name={t.rate} value={f.rate(line?.rate ?? admitted)}>
        {noLine ? "" : sale.line.rate > 0 ? t.rateCap(f.number(sale.line.rate)) : t.noCap}
      </Figure>
      <Figure name={t.turns} value={f.count(line?.turns)}>
        {noLine ? "" : sale.line.active > 0 ? t.turnsCap(f.number(sale.line.active)) : t.noCap}
      </Figure>
      <Figure name={t.served} value={f.count(line?.served)}>
        {line && t.servedOf(f.count(line.issued))}
      </Figure>
      <Figure name={t.connections} value={nodes.length > 0 ? f.count(connections) : "–"}>
        {nodes.length > 0 && t.shoppersHere(f.count(shoppers))}
      </Figure>
      <Figure name={t.taken} value={part === undefined ? "–" : f.percent(part)} part={part ?? 0}>
        {t.ofTotal(f.count(taken), f.number(total))}
        {line && line.held > 0 && ` · ${t.heldUnits(f.number(line.held))}`}
      </Figure>
    </dl>
  );
}

function Figure(props: { name: string; value: string; main?: boolean; part?: number; children?: ComponentChildren }) {
  return (
    <div class={props.main ? "figure main" : "figure"}>
      <dt>{props.name}</dt>
      <dd class="value digits">{props.value}</dd>
      <dd class="sub">{props.children}</dd>
      {props.part !== undefined && (
        <dd class="part">
          <Bar value={props.part} />
        </dd>
      )}
    </div>
  );
}
