import type { Api, LineChange } from "./api.ts";
import { type Control, isMove } from "./controls.ts";
import { fromLocal } from "./local-time.ts";
import type { Sale } from "./types.ts";

/** Does what a dialog asked for. A figure that was not touched is not sent: somebody else may have changed it meanwhile. */
export async function act(api: Api, sale: Sale, control: Control, fields: FormData): Promise<void> {
  if (isMove(control)) {
    await api.move(sale.id, control);
    return;
  }
  const text = (name: string) => String(fields.get(name) ?? "").trim();
  if (control === "extend") {
    await api.extend(sale.id, fromLocal(text("closes_at"), sale.closes_at));
    return;
  }
  if (control === "line") {
    const change: LineChange = {};
    for (const name of ["rate", "active", "ratio"] as const) {
      if (text(name) !== "" && Number(text(name)) !== sale.line[name]) change[name] = Number(text(name));
    }
    if (Object.keys(change).length > 0) await api.line(sale.id, change);
    return;
  }
  for (const item of sale.items) {
    const total = text(`total ${item.id}`);
    if (total !== "" && Number(total) !== item.stock) await api.stock(sale.id, item.id, Number(total));
  }
}
