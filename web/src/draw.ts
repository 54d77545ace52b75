// Repeats the draw of a lottery in the browser, from what the server publishes and from the shopper's own entry. The rules
// are those of docs/protocol.md, written here a second time so that the page need not believe the server.

/** A lottery as the server publishes it; hashes in hex. */
export interface Draw {
  state: "committed" | "frozen" | "drawn";
  commitment: string;
  beacon: string;
  count?: number;
  root?: string;
  priorities?: boolean; // some entries have a priority
  value?: string;
  secret?: string;
  seed?: string;
}

/** The shopper's own entry. */
export interface Entry {
  user: string;
  nonce: string;
  leaf: string;
  priority?: number; // those of a higher one come first
  index: number;
  count: number;
  path: string[];
  number?: number;
}

/** What is checked, in this order. What comes after a step that does not hold says nothing, so it is left out. */
export type Step = "noted" | "commitment" | "seed" | "entry" | "path" | "place";

export interface Checked {
  step: Step;
  holds: boolean;
}

const hex = (bytes: Uint8Array) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

const bytesOf = (text = "") => Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));

async function sha256(...parts: Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  const all = Uint8Array.from(parts.flatMap((part) => [...part]));
  return new Uint8Array(await crypto.subtle.digest("SHA-256", all));
}

/** A number as eight bytes, big-endian; the higher half is never reached. */
function eight(n: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setUint32(4, n);
  return bytes;
}

const utf8 = (text: string) => new TextEncoder().encode(text);
const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);
const ROOT = Uint8Array.of(2);

/** Whether a leaf stands at an index of a tree of count leaves (RFC 6962), where the root is over count and tree. */
export async function verifyPath(root: string, leaf: string, index: number, count: number, path: string[]) {
  if (!(index >= 0 && index < count)) return false;
  let hash = await sha256(LEAF, bytesOf(leaf));
  let used = 0;
  for (let i = index, last = count - 1; last > 0; i = Math.floor(i / 2), last = Math.floor(last / 2)) {
    const sibling = i % 2 === 0 ? i + 1 : i - 1;
    if (sibling > last) continue;
    if (used >= path.length) return false;
    const other = bytesOf(path[used++]);
    hash = i % 2 === 0 ? await sha256(NODE, hash, other) : await sha256(NODE, other, hash);
  }
  return used === path.length && hex(await sha256(ROOT, eight(count), hash)) === root;
}

const BLOCKS = 2048; // hashes that are asked for at once

/** The order that a seed gives n entries: the entry with index order[i] has the place i, both from 0. */
export async function drawOrder(seed: string, n: number): Promise<Uint32Array> {
  const order = new Uint32Array(n);
  for (let i = 0; i < n; i++) order[i] = i;
  let words: Uint32Array<ArrayBufferLike> = new Uint32Array(0);
  let used = 0;
  let counter = 0;
  const start = bytesOf(seed);
  const refill = async () => {
    const blocks = await Promise.all(Array.from({ length: BLOCKS }, () => sha256(start, eight(counter++))));
    words = new Uint32Array(BLOCKS * 8);
    used = 0;
    blocks.forEach((block, i) => {
      const view = new DataView(block.buffer);
      for (let w = 0; w < 8; w++) words[8 * i + w] = view.getUint32(4 * w);
    });
  };
  for (let i = n - 1; i > 0; i--) {
    const choices = i + 1;
    const limit = Math.floor(2 ** 32 / choices) * choices;
    let word: number;
    do {
      if (used === words.length) await refill();
      word = words[used++] as number;
    } while (word >= limit);
    const j = word % choices;
    const kept = order[i] as number;
    order[i] = order[j] as number;
    order[j] = kept;
  }
  return order;
}

/** What the tree has of an entry: the leaf, or what binds it to its priority. */
async function entryOf({ leaf, priority }: Entry): Promise<string> {
  return priority ? hex(await sha256(Uint8Array.of(3), bytesOf(leaf), Uint8Array.of(priority))) : leaf;
}

/**
 * Repeats the draw for one entry. `noted` is the commitment as this page saw it before the sale opened; ranks are the
 * priorities of all entries, as the server tells them: only those who fetch all entries can check those of others.
 */
export async function check(draw: Draw, entry: Entry, noted: string | undefined, ranks?: Uint8Array) {
  const checks: Checked[] = [];
  const steps: [Step, () => boolean | Promise<boolean>][] = [
    ["commitment", async () => hex(await sha256(bytesOf(draw.secret))) === draw.commitment],
    [
      "seed",
      async () =>
        draw.beacon === "none" &&
        !draw.value &&
        hex(await sha256(bytesOf(draw.secret), bytesOf(draw.root))) === draw.seed,
    ],
    ["entry", async () => hex(await sha256(utf8(entry.user), bytesOf(entry.nonce))) === entry.leaf],
    [
      "path",
      async () =>
        entry.count === draw.count &&
        verifyPath(draw.root ?? "", await entryOf(entry), entry.index, entry.count, entry.path),
    ],
    [
      "place",
      async () => {
        const order = await drawOrder(draw.seed ?? "", draw.count ?? 0);
        const rank = (index: number) => ranks?.[index] ?? 0;
        if (ranks) order.sort((a, b) => rank(b) - rank(a));
        return order[(entry.number ?? 0) - 1] === entry.index && rank(entry.index) === (entry.priority ?? 0);
      },
    ],
  ];
  if (noted !== undefined) steps.unshift(["noted", () => noted === draw.commitment]);
  for (const [step, holds] of steps) {
    checks.push({ step, holds: await holds() });
    if (!checks.at(-1)?.holds) break;
  }
  return checks;
}

/** What came of it, and the root that it was checked against: others must see the same one. */
export interface Outcome {
  checks: Checked[];
  root: string;
}

/** Fetches both and checks them. It fails when they cannot be had, or when the browser cannot hash. */
export async function fetchAndCheck(sale: string, token: string, noted: string | undefined): Promise<Outcome> {
  if (!globalThis.crypto?.subtle) throw new Error("insecure");
  const get = async (path: string): Promise<Response> => {
    const answer = await fetch(`/api/v1/sales/${sale}/${path}`, { headers: { Authorization: `Bearer ${token}` } });
    if (!answer.ok) throw new Error(answer.status === 409 ? "none" : "unreached");
    return answer;
  };
  const entry: Entry = await (await get("draw/mine")).json();
  const draw: Draw = await (await get("draw")).json();
  const ranks = draw.priorities ? new Uint8Array(await (await get("draw/priorities")).arrayBuffer()) : undefined;
  return { checks: await check(draw, entry, noted, ranks), root: draw.root ?? "" };
}
