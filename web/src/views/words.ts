import type { Messages } from "../lang/en.ts";
import type { Language } from "../lang/index.ts";
import type { View } from "../state.ts";

/** When a seat's turn comes, as a range in words. */
export function etaWords(view: View & { name: "queued" }, { t, f }: Language): string {
  if (view.eta_ms === undefined) return t.etaUnknown;
  const range = f.range(view.eta_ms, Math.max(view.eta_ms, view.eta_max_ms ?? view.eta_ms));
  return range ? t.etaAbout(range) : t.etaSoon;
}

/** How an order stands, in a few words. */
export function orderHead(view: View & { name: "order" }, t: Messages): string {
  const { status } = view.order;
  if (status === "reserved") return view.already ? t.already : t.success;
  return t[status];
}
