import { language } from "../lang/index.ts";
import { limitedSum, type NodeRates } from "../rates.ts";
import { type About, limiters, type NodeFigures } from "../types.ts";
import { Panel } from "./parts.tsx";

/** The limits of this installation, and what they refuse. */
export function LimitsPanel(props: {
  limits: About["limits"] | undefined;
  nodes: NodeFigures[];
  rates: NodeRates | undefined;
}) {
  const { t, f } = language.value;
  const sum = limitedSum(props.nodes);
  return (
    <Panel title={t.limits} class="limits">
      <table>
        <thead>
          <tr>
            <td />
            <th scope="col" class="n">
              {t.limitColumn}
            </th>
            <th scope="col" class="n">
              {t.limited}
            </th>
            <th scope="col" class="n">
              {t.limitedSince}
            </th>
          </tr>
        </thead>
        <tbody>
          {limiters.map((by) => (
            <tr key={by}>
              <th scope="row">{t.limit[by]}</th>
              <td class="n">{props.limits ? props.limits[by] || t.limitOff : "–"}</td>
              <td class="n">{f.rate(props.rates?.limited[by])}</td>
              <td class="n">{f.number(sum[by])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
