// The shop's side of a journey: it makes sales, runs them, and looks at them, over the API.
import { BASE_URL, eventually, must, SALE } from "./journey.mjs";

const base = BASE_URL.replace(/\/$/, "");

async function ask(method, path, token, body) {
  const answer = await fetch(`${base}/api/v1${path}`, {
    method,
    headers: {
      ...(token && { Authorization: `Bearer ${token}` }),
      ...(body && { "Content-Type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  must(answer.ok, `${method} ${path} is answered with ${answer.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

const admin = (method, path, body) => ask(method, `/admin/sales/${path}`, process.env.ADMIN, body);

/** The items of the sales, with so many units of each. */
export const items = (black = 600, white = 400) => [
  { id: "black", title: { en: "Midnight black", zh: "午夜黑" }, price: 299900, stock: black },
  ...(white > 0 ? [{ id: "white", title: { en: "Pearl white", zh: "珍珠白" }, price: 319900, stock: white }] : []),
];

/** Makes a sale, or changes it: open, with a line that lets in one after the other, unless told otherwise. */
export function apply({ id = SALE, line, ...change } = {}) {
  return admin("PUT", id, {
    id,
    title: { en: "Phone X, 1,000 units", zh: "Phone X 限量 1000 台" },
    items: items(),
    currency: "CNY",
    opens_at: "+0s",
    closes_at: "+2h",
    hold: "15m",
    ...change,
    line: { order: "fifo", active: 1, turn: "10m", grace: "10m", ...line },
  });
}

/** Opens, pauses, resumes or closes a sale. */
export const operate = (action, id = SALE) => admin("POST", `${id}/${action}`);

/** A sale as everybody may see it. */
export const view = (id = SALE) => ask("GET", `/sales/${id}`);

/** Waits until everybody may see that so many units of the first item are left. */
export function stockIs(units, id = SALE) {
  return eventually(
    `${units} units are left`,
    () => view(id),
    ({ items }) => items[0].stock === units,
  );
}

/** A new guest's token. */
export const guest = async () => (await ask("POST", "/guests")).token;

/** Gives up somebody's place. */
export const leaveSeat = (token, id = SALE) => ask("DELETE", `/sales/${id}/seat`, token);

/** Pays or cancels somebody's order, as soon as that is possible. */
export function settle(token, order, action) {
  return eventually(`order ${order} can be changed`, () =>
    ask("POST", `/orders/${order}/${action}`, token).catch(() => {}),
  );
}
