import type { Api, LineChange } from "./api.ts";
import { type Control, isMove } from "./controls.ts";
import { fromLocal, toLocal } from "./local-time.ts";
import type { Sale } from "./types.ts";

/**
 * Does what a dialog asked for, and says whether that was anything. asked is the sale as the dialog showed it: a figure that
 * is still the same was not touched, and is not sent, since somebody else may have changed it meanwhile.
 */
export async function act(api: Api, asked: Sale, control: Control, fields: FormData): Promise<boolean> {
  if (isMove(control)) {
    await api.move(asked.id, control);
    return true;
  }
  const text = (name: string) => String(fields.get(name) ?? "").trim();
  if (control === "extend") {
    if (text("closes_at") === toLocal(asked.closes_at)) return false;
    await api.extend(asked.id, fromLocal(text("closes_at")));
    return true;
  }
  if (control === "line") {
    const change: LineChange = {};
    for (const name of ["rate", "active", "ratio"] as const) {
      if (text(name) !== "" && Number(text(name)) !== asked.line[name]) change[name] = Number(text(name));
    }
    if (Object.keys(change).length === 0) return false;
    await api.line(asked.id, change);
    return true;
  }
  let sent = false;
  for (const item of asked.items) {
    const total = text(`total ${item.id}`);
    if (total === "" || Number(total) === item.stock) continue;
    await api.stock(asked.id, item.id, Number(total));
    sent = true;
  }
  return sent;
}
