import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { askGuest, codeIn, forget, held, memoryOf, Store, tokenFromAddress } from "../src/identity.ts";

const token = (claims: object) => `h.${btoa(JSON.stringify(claims)).replaceAll("=", "")}.s`;
const answer = (status: number, body: object = {}, headers: Record<string, string> = {}) =>
  vi.stubGlobal("fetch", async () => new Response(JSON.stringify(body), { status, headers }));

beforeEach(() => localStorage.clear());
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  history.replaceState(null, "", "/");
});

describe("a token in the address", () => {
  it("is taken, kept, and gone from the address", () => {
    history.replaceState(null, "", "/s/phone-x?ref=1#token=abc");
    tokenFromAddress(new Store(), "phone-x");
    expect(location.href).not.toContain("abc");
    expect(location.search).toBe("?ref=1");
    expect(held(new Store(), "phone-x")).toEqual({ token: "abc", guest: false });
  });

  it("takes the place of a guest, and another fragment does not", () => {
    new Store().write("sluice:user", { token: "guest", guest: true });
    history.replaceState(null, "", "/s/phone-x#main");
    tokenFromAddress(new Store(), "phone-x");
    expect(held(new Store(), "phone-x")?.token).toBe("guest");
    history.replaceState(null, "", "/s/phone-x#token=abc");
    tokenFromAddress(new Store(), "phone-x");
    expect(held(new Store(), "phone-x")?.token).toBe("abc");
  });
});

describe("an access code in the address", () => {
  it("is kept for its sale, is gone from the address, and touches no identity", () => {
    const store = new Store();
    store.write("sluice:user", { token: "mine", guest: true });
    history.replaceState(null, "", "/s/phone-x#code=EARLY-BIRD");
    tokenFromAddress(store, "phone-x");
    expect(location.href).not.toContain("EARLY");
    expect(store.read(codeIn("phone-x"))).toBe("EARLY-BIRD");
    expect(store.read(codeIn("other"))).toBeUndefined();
    expect(held(store, "phone-x")?.token).toBe("mine");
    history.replaceState(null, "", "/s/phone-x#token=abc&code=OTHER-BIRD");
    tokenFromAddress(store, "phone-x");
    expect(held(store, "phone-x")?.token).toBe("abc");
    expect(store.read(codeIn("phone-x"))).toBe("OTHER-BIRD");
  });
});

describe("the place of another device", () => {
  it("counts for its sale only, and leaves who this device belongs to where they are", () => {
    const store = new Store();
    store.write("sluice:user", { token: "mine", guest: true });
    history.replaceState(null, "", "/s/phone-x#place=theirs");
    tokenFromAddress(store, "phone-x");
    expect(location.href).not.toContain("theirs");
    expect(held(store, "phone-x")?.token).toBe("theirs");
    expect(held(store, "other")?.token).toBe("mine");
    forget(store, "phone-x");
    expect(held(store, "phone-x")?.token, "the one who was asked to begin anew is forgotten, nobody else").toBe("mine");
  });

  it("gives way to who the shop says that the user is", () => {
    const store = new Store();
    history.replaceState(null, "", "/s/phone-x#place=theirs");
    tokenFromAddress(store, "phone-x");
    history.replaceState(null, "", "/s/phone-x#token=abc");
    tokenFromAddress(store, "phone-x");
    expect(held(store, "phone-x")?.token).toBe("abc");
  });
});

describe("guests", () => {
  it("are asked for once and then kept", async () => {
    answer(200, { token: "t" });
    expect(await askGuest(new Store(), "phone-x")).toEqual({ kind: "guest", identity: { token: "t", guest: true } });
    expect(held(new Store(), "phone-x")?.token).toBe("t");
  });

  it("are the same in two tabs that asked at once", async () => {
    vi.stubGlobal("fetch", async () => {
      new Store().write("sluice:user", { token: "other tab", guest: true });
      return new Response(JSON.stringify({ token: "mine" }));
    });
    expect(await askGuest(new Store(), "phone-x")).toMatchObject({ identity: { token: "other tab" } });
  });

  it("may be refused, or come later; a fault is not a refusal", async () => {
    answer(403);
    expect(await askGuest(new Store(), "phone-x")).toEqual({ kind: "refused" });
    answer(429, {}, { "Retry-After": "3" });
    expect(await askGuest(new Store(), "phone-x")).toEqual({ kind: "later", after: 3000 });
    answer(503);
    expect(await askGuest(new Store(), "phone-x")).toEqual({ kind: "later", after: undefined });
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("no network")));
    expect(await askGuest(new Store(), "phone-x")).toEqual({ kind: "later" });
  });
});

it("a token that ended long ago is not tried, one that ended just now is: this clock may be wrong", () => {
  const store = new Store();
  const seconds = Date.now() / 1000;
  store.write("sluice:user", { token: token({ exp: seconds - 60 }), guest: true });
  expect(held(store, "phone-x")).toBeDefined();
  store.write("sluice:user", { token: token({ exp: seconds - 2 * 86_400 }), guest: true });
  expect(held(store, "phone-x")).toBeUndefined();
});

it("a seat is remembered for its user and its sale, also under a renewed token", () => {
  const store = new Store();
  memoryOf(store, "a", token({ sub: "ann", exp: 1 })).save({ seat: "s", order: "o" });
  expect(memoryOf(store, "a", token({ sub: "ann", exp: 2 })).load()).toMatchObject({ seat: "s", order: "o" });
  expect(memoryOf(store, "a", token({ sub: "bob" })).load()).toEqual({});
  expect(memoryOf(store, "b", token({ sub: "ann" })).load()).toEqual({});
});

it("where nothing can be kept, the page still remembers", () => {
  vi.stubGlobal("localStorage", {
    getItem: () => {
      throw new Error("blocked");
    },
    setItem: () => {
      throw new Error("blocked");
    },
    removeItem: () => {
      throw new Error("blocked");
    },
  });
  const store = new Store();
  store.write("sluice:user", { token: "t", guest: true });
  expect(held(store, "phone-x")?.token).toBe("t");
  forget(store, "phone-x");
  expect(held(store, "phone-x")).toBeUndefined();
});
