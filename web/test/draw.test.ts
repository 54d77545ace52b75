import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { check, type Draw, drawOrder, type Entry, verifyPath } from "../src/draw.ts";

const sha = (...parts: (string | Uint8Array)[]) => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};
const hex = (data: Uint8Array) => Buffer.from(data).toString("hex");

/** The tree again, from the top, as RFC 6962 writes it. */
function tree(leaves: Buffer[]): Buffer {
  if (leaves.length === 1) return sha(Uint8Array.of(0), leaves[0] as Buffer);
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return sha(Uint8Array.of(1), tree(leaves.slice(0, k)), tree(leaves.slice(k)));
}

function pathOf(leaves: Buffer[], i: number): string[] {
  if (leaves.length === 1) return [];
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return i < k
    ? [...pathOf(leaves.slice(0, k), i), hex(tree(leaves.slice(k)))]
    : [...pathOf(leaves.slice(k), i - k), hex(tree(leaves.slice(0, k)))];
}

async function honest(count = 21, index = 13, ranks?: Uint8Array): Promise<{ draw: Draw; entry: Entry }> {
  const nonce = Buffer.alloc(16, 5);
  const plain = Array.from({ length: count }, (_, i) => sha(`用户-${i}`, nonce));
  const leaves = plain.map((leaf, i) =>
    ranks?.[i] ? sha(Uint8Array.of(3), leaf, Uint8Array.of(ranks[i] as number)) : leaf,
  );
  const secret = Buffer.alloc(32, 9);
  const size = Buffer.alloc(8);
  size.writeUInt32BE(count, 4);
  const root = sha(Uint8Array.of(2), size, tree(leaves));
  const seed = hex(sha(secret, root));
  const drawn = [...(await drawOrder(seed, count))];
  const levels = [...new Set(ranks ?? [0])].sort((a, b) => b - a);
  const order = levels.flatMap((level) => drawn.filter((i) => (ranks?.[i] ?? 0) === level));
  return {
    draw: {
      state: "drawn",
      commitment: hex(sha(secret)),
      beacon: "none",
      count,
      root: hex(root),
      secret: hex(secret),
      seed,
    },
    entry: {
      user: `用户-${index}`,
      nonce: hex(nonce),
      leaf: hex(plain[index] as Buffer),
      ...(ranks?.[index] && { priority: ranks[index] }),
      index,
      count,
      path: pathOf(leaves, index),
      number: order.indexOf(index) + 1,
    },
  };
}

describe("a draw", () => {
  it("gives the order that the server's own implementation gives", async () => {
    const seed = `${"00".repeat(31)}01`;
    expect([...(await drawOrder(seed, 10))]).toEqual([0, 8, 6, 2, 3, 1, 4, 7, 5, 9]);
    expect([...(await drawOrder(seed, 1))]).toEqual([0]);
    expect(new Set(await drawOrder(seed, 20_000)).size).toBe(20_000);
  });

  it("holds when it is honest", async () => {
    for (const [count, index] of [
      [1, 0],
      [2, 1],
      [21, 13],
      [21, 20],
    ] as const) {
      const { draw, entry } = await honest(count, index);
      const checks = await check(draw, entry, draw.commitment);
      expect(checks.map((c) => c.step)).toEqual(["noted", "commitment", "seed", "entry", "path", "place"]);
      expect(checks.every((c) => c.holds)).toBe(true);
    }
  });

  it.each<[string, Partial<Draw>, Partial<Entry>]>([
    ["commitment", { secret: "00".repeat(32) }, {}],
    ["seed", { seed: "00".repeat(32) }, {}],
    ["seed", { beacon: "ours" }, {}],
    ["seed", { root: "00".repeat(32) }, {}],
    ["entry", {}, { user: "somebody" }],
    ["path", {}, { index: 12 }],
    ["path", {}, { count: 20 }],
    ["path", { count: 20 }, { count: 20 }],
    ["path", { count: 17 }, { count: 17 }],
    ["path", {}, { path: [] }],
    ["path", {}, { path: ["00".repeat(32)] }],
    ["place", {}, { number: 22 }],
    ["place", {}, { number: 0 }],
  ])("does not hold when the %s is tampered with", async (step, draw, entry) => {
    const honestly = await honest();
    const checks = await check({ ...honestly.draw, ...draw }, { ...honestly.entry, ...entry }, undefined);
    expect(checks.at(-1)).toEqual({ step, holds: false });
  });

  it("puts those of a higher priority first, and binds each to its own", async () => {
    const ranks = Uint8Array.from({ length: 21 }, (_, i) => [0, 7, 255][i % 3] as number);
    for (const index of [12, 13, 14]) {
      const { draw, entry } = await honest(21, index, ranks);
      const last = async (change: Partial<Entry>, told: Uint8Array | undefined) =>
        (await check(draw, { ...entry, ...change }, undefined, told)).at(-1);
      expect(await last({}, ranks)).toEqual({ step: "place", holds: true });
      expect(await last({ priority: 9 }, ranks)).toEqual({ step: "path", holds: false });
      expect((await last({}, undefined))?.holds, "without the priorities").toBe(false);
      expect((await last({}, ranks.with(index, 3)))?.holds, "with another of one's own").toBe(false);
    }
  });

  it("does not hold when the fingerprint is another one than before", async () => {
    const { draw, entry } = await honest();
    expect(await check(draw, entry, "00".repeat(32))).toEqual([{ step: "noted", holds: false }]);
  });

  it("refuses indexes that are not in the tree", async () => {
    const { draw, entry } = await honest();
    for (const index of [-1, 21, 1e9, Number.NaN]) {
      expect(await verifyPath(draw.root ?? "", entry.leaf, index, 21, entry.path)).toBe(false);
    }
  });
});
