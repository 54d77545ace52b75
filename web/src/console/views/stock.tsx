import { language } from "../lang/index.ts";
import type { Sale } from "../types.ts";
import { Bar, Panel, Scroll } from "./parts.tsx";
import { itemTitle } from "./words.ts";

const MANY = 12;

/** What is left of each item. */
export function StockPanel({ sale }: { sale: Sale }) {
  const { t, f } = language.value;
  const list = (
    <ul>
      {sale.items.map(({ id, stock, left }) => (
        <li key={id}>
          <span class="name">{itemTitle(sale, id, language.value)}</span>
          <span class="digits">{t.leftOf(f.count(left), f.number(stock))}</span>
          <Bar value={left === undefined || stock === 0 ? 0 : left / stock} />
        </li>
      ))}
    </ul>
  );
  return (
    <Panel title={t.stockTitle} class="stock">
      {sale.items.length > MANY ? (
        <Scroll label={t.stockTitle} class="tall">
          {list}
        </Scroll>
      ) : (
        list
      )}
    </Panel>
  );
}
