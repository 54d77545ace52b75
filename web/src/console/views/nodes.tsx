import { language } from "../lang/index.ts";
import type { NodeFigures } from "../types.ts";
import { Panel, Scroll } from "./parts.tsx";

const LATE_MS = 5_000; // nodes report themselves about every second

/** The nodes that serve, and when each was heard of. */
export function NodesPanel({ nodes, now }: { nodes: NodeFigures[]; now: number }) {
  const { t, f } = language.value;
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
                <tr key={node.node} class={now - node.at > LATE_MS ? "late" : ""}>
                  <th scope="row">
                    <code>{node.node}</code>
                  </th>
                  <td class="n">{f.number(node.connections)}</td>
                  <td class="n">{f.number(node.shoppers)}</td>
                  <td class="n">{f.number(node.grabs?.success ?? 0)}</td>
                  <td class="n">{f.span(now - node.started, "narrow")}</td>
                  <td class="n">{t.ago(f.span(now - node.at, "narrow"))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  );
}
