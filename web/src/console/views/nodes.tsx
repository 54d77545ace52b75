import { language } from "../lang/index.ts";
import type { NodeFigures } from "../types.ts";
import { Panel, Scroll } from "./parts.tsx";

const LATE_MS = 5_000; // nodes report themselves about every second

/**
 * The nodes that serve, and when each was heard of. That goes by when its report changed here, since the clock of a node may
 * be wrong.
 */
export function NodesPanel(props: { nodes: NodeFigures[]; now: number; heard: (node: string) => number | undefined }) {
  const { t, f } = language.value;
  const { nodes, now } = props;
  const silent = ({ node }: NodeFigures) => now - (props.heard(node) ?? now);
  const sorted = [...nodes].sort((a, b) => (a.node < b.node ? -1 : 1));
  return (
    <Panel title={t.nodes} class="nodes">
      {nodes.length === 0 ? (
        <p class="soft">{t.nodesNone}</p>
      ) : (
        <Scroll label={t.nodes} class="tall">
          <table>
            <thead>
              <tr>
                <th scope="col">{t.node}</th>
                <th scope="col" class="n">
                  {t.nodeConnections}
                </th>
                <th scope="col" class="n">
                  {t.nodeShoppers}
                </th>
                <th scope="col" class="n">
                  {t.nodeGrabs}
                </th>
                <th scope="col" class="n">
                  {t.nodeUp}
                </th>
                <th scope="col" class="n">
                  {t.nodeSeen}
                </th>
              </tr>
            </thead>
            <tbody>
              {sorted.map((node) => (
                <tr key={node.node} class={silent(node) > LATE_MS ? "late" : ""}>
                  <th scope="row">
                    <code>{node.node}</code>
                  </th>
                  <td class="n">{f.number(node.connections)}</td>
                  <td class="n">{f.number(node.shoppers)}</td>
                  <td class="n">{f.number(node.grabs?.success ?? 0)}</td>
                  <td class="n">{f.span(node.at - node.started, "narrow")}</td>
                  <td class="n">{t.ago(f.span(silent(node), "narrow"))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  );
}
