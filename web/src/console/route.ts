import { signal } from "@preact/signals";

/** Where in the console one is. The part of a page is behind the #, so that moving between parts keeps the figures. */
export type Route =
  | { page: "sales"; part: "list" | "archived" | "new" }
  | { page: "sale"; sale: string; part: SalePart }
  | { page: "nowhere" };
export type SalePart = "live" | "orders" | "settings";

export function routeOf(path: string, hash: string): Route {
  if (/^\/admin\/?$/.test(path)) {
    return {
      page: "sales",
      part: hash === "#new" || hash === "#archived" ? (hash.slice(1) as "new" | "archived") : "list",
    };
  }
  const sale = /^\/admin\/s\/([a-z0-9][a-z0-9-]{0,62})\/?$/.exec(path)?.[1];
  if (!sale) return { page: "nowhere" };
  const part = hash === "#orders" || hash === "#settings" ? (hash.slice(1) as SalePart) : "live";
  return { page: "sale", sale, part };
}

export const route = signal<Route>({ page: "nowhere" });

export function followAddress(): void {
  const read = () => {
    if (location.hash === "#main" && route.value.page !== "nowhere") return; // the way to the content of the part shown
    route.value = routeOf(location.pathname, location.hash);
  };
  read();
  addEventListener("hashchange", read);
}
