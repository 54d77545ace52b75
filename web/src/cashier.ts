import { Backoff } from "./backoff.ts";
import type { Order } from "./protocol.ts";
import type { Change } from "./state.ts";

const ATTEMPTS = 4;
const ANSWER_MS = 12_000; // the server gives itself ten seconds

/**
 * Pays or cancels an order, and returns it as it is then. Both may be repeated without harm, so what was not answered, or
 * refused for the moment, is asked again a few times. An order that does not allow the change any more is returned as it is.
 */
export async function changeOrder(
  api: string,
  token: string,
  order: Order,
  what: Change,
): Promise<Order | "refused" | "unanswered"> {
  const url = `${api}/orders/${order.id}`;
  const of = `?sale=${order.sale}`; // says where to look for it while it has no row
  const headers = { Authorization: `Bearer ${token}` };
  const backoff = new Backoff();
  for (let attempt = 1; ; attempt++) {
    let after = 0;
    try {
      // A phone that changes its network would otherwise wait for minutes for an answer that is lost.
      const ask = (path: string, method: string) =>
        fetch(path, { method, headers, signal: AbortSignal.timeout(ANSWER_MS) });
      let answer = await ask(`${url}/${what}${of}`, "POST");
      if (answer.status === 409) answer = await ask(url + of, "GET");
      if (answer.ok) return (await answer.json()) as Order;
      if (answer.status < 500 && answer.status !== 429) return "refused";
      after = Number(answer.headers.get("Retry-After")) * 1000;
    } catch {
      // The answer was lost, or the request: the next attempt settles it.
    }
    if (attempt === ATTEMPTS) return "unanswered";
    const wait = Math.max(after, backoff.next());
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
