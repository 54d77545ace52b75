import type { Memory } from "./sluice.ts";

/** Who the shopper is: a token of the shop, or of a guest. */
export interface Identity {
  token: string;
  guest: boolean;
}

/** How asking for a guest went. */
export type GuestAnswer =
  | { kind: "guest"; identity: Identity }
  | { kind: "refused" }
  | { kind: "later"; after?: number };

const IDENTITY = "sluice:user";

/** What survives a reload. Where the browser keeps nothing (private windows, blocked storage) it lasts as long as the page. */
export class Store {
  readonly #fallback = new Map<string, string>();

  read<T>(key: string): T | undefined {
    try {
      const text = localStorage.getItem(key);
      if (text) return JSON.parse(text) as T;
    } catch {
      // The browser keeps nothing, or somebody else has written there.
    }
    return JSON.parse(this.#fallback.get(key) ?? "null") ?? undefined;
  }

  write(key: string, value: unknown): void {
    const text = value === undefined ? undefined : JSON.stringify(value);
    try {
      if (text === undefined) localStorage.removeItem(key);
      else localStorage.setItem(key, text);
      this.#fallback.delete(key);
    } catch {
      if (text === undefined) this.#fallback.delete(key);
      else this.#fallback.set(key, text);
    }
  }
}

/**
 * Takes out of the address what a link put there: the shop's token (`#token=…`), or that of another device of the shopper
 * (`#place=…`), which counts for this sale only: whoever this device belongs to keeps their places in others; and an access
 * code for this sale (`#code=…`). A fragment is sent to no server, and it is removed from the address at once, so that it
 * stays in no history and in no copied link.
 */
export function tokenFromAddress(store: Store, sale: string | undefined): void {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get("token");
  const place = fragment.get("place");
  const code = fragment.get("code");
  if (!token && !place && !code) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (token) {
    forget(store, sale);
    store.write(IDENTITY, { token, guest: false } satisfies Identity);
  } else if (sale && place) {
    store.write(identityIn(sale), { token: place, guest: false } satisfies Identity);
  }
  if (sale && code) store.write(codeIn(sale), code);
}

/** Where the access code is kept that a link brought along. */
export const codeIn = (sale: string) => `sluice:code:${sale}`;

/** The identity that is held for a sale, if it still holds. */
export function held(store: Store, sale: string | undefined): Identity | undefined {
  const kept = [sale && store.read<Identity>(identityIn(sale)), store.read<Identity>(IDENTITY)];
  return kept.find((identity): identity is Identity => !!identity && !!identity.token && !isExpired(identity.token));
}

export function forget(store: Store, sale: string | undefined): void {
  if (sale && store.read(identityIn(sale))) store.write(identityIn(sale), undefined);
  else store.write(IDENTITY, undefined);
}

const identityIn = (sale: string) => `${IDENTITY}:${sale}`;

/** Asks for a guest. Another tab may have been faster: its guest is then ours, as one person has one place. */
export async function askGuest(store: Store, sale: string | undefined): Promise<GuestAnswer> {
  let answer: Response;
  try {
    answer = await fetch("/api/v1/guests", { method: "POST" });
  } catch {
    return { kind: "later" };
  }
  if (answer.status === 403 || answer.status === 404) return { kind: "refused" };
  if (!answer.ok) {
    const seconds = Number(answer.headers.get("Retry-After"));
    return { kind: "later", after: seconds > 0 ? seconds * 1000 : undefined };
  }
  const { token } = (await answer.json()) as { token: string };
  const other = held(store, sale);
  if (other) return { kind: "guest", identity: other };
  const identity = { token, guest: true };
  store.write(IDENTITY, identity);
  return { kind: "guest", identity };
}

/** What is remembered of a sale, for the user of that token: another user's seat would only be refused. */
export function memoryOf(store: Store, sale: string, token: string) {
  const key = `sluice:sale:${sale}`;
  const user = subject(token);
  return {
    load: (): Memory => {
      const kept = store.read<Memory & { user: string }>(key);
      return kept?.user === user ? kept : {};
    },
    save: ({ seat, order, left }: Memory): void => store.write(key, { user, seat, order, left }),
  };
}

function claims(token: string): { sub?: string; exp?: number } {
  try {
    const part = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(part), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {}; // not a JWT: the server decides what it is worth
  }
}

function subject(token: string): string {
  return claims(token).sub ?? token;
}

/** By this device's clock, which may be wrong: only a token that ended more than a day ago is not even tried. */
function isExpired(token: string): boolean {
  const end = claims(token).exp;
  return end !== undefined && end * 1000 < Date.now() - 86_400_000;
}
