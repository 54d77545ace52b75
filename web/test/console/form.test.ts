import { describe, expect, it } from "vitest";
import {
  emptyForm,
  emptyItem,
  type FormItem,
  fileOf,
  fixedFields,
  formOf,
  rebase,
  validId,
} from "../../src/console/form.ts";
import { parseDuration, tidyDuration } from "../../src/console/go-duration.ts";
import { fromLocal, toLocal } from "../../src/console/local-time.ts";
import type { Sale } from "../../src/console/types.ts";
import { file, sale, T } from "./sample.ts";

describe("a form of a sale", () => {
  it("gives back the file that it came from, to the millisecond", () => {
    const shown = sale();
    const tidy = { lobby: "30m", hold: "15m", line: { ...file().line, turn: "1m", grace: "10m" } };
    expect(fileOf(formOf(shown), shown)).toEqual(file(tidy));
  });

  it("keeps access rules, which it does not show", () => {
    const shown = sale({ access: { deny: ["10.0.0.0/8"] } });
    expect(fileOf(formOf(shown), shown).access).toEqual({ deny: ["10.0.0.0/8"] });
    expect(fileOf(formOf(sale()), sale())).not.toHaveProperty("access");
  });

  it("writes one text where there is one for all languages, and leaves out what is empty", () => {
    const shown = sale({ title: "Phone X", items: [{ id: "main", stock: 5 }], currency: "" });
    const written = fileOf(formOf(shown), shown);
    expect(written.title).toBe("Phone X");
    expect(written.items).toEqual([{ id: "main", stock: 5 }]);
    expect(written).not.toHaveProperty("currency");
    const form = { ...formOf(shown), title: { "": "Phone X", zh: "手机 X", en: " " } };
    expect(fileOf(form, shown).title).toEqual({ "": "Phone X", zh: "手机 X" });
  });

  it("leaves what is no number to the server, which says what is wrong with it", () => {
    const form = { ...formOf(sale()), limit: "many", rate: " 12 ", items: [{ ...emptyItem("a"), stock: "" }] };
    const written = fileOf(form);
    expect(written.limit).toBe("many");
    expect(written.line.rate).toBe(12);
    expect(written.items[0]?.stock).toBe("");
  });

  it("begins with something that could be saved", () => {
    const written = fileOf({ ...emptyForm(T), id: "new" });
    expect(Date.parse(written.closes_at)).toBeGreaterThan(Date.parse(written.opens_at));
    expect(Date.parse(written.opens_at)).toBeGreaterThan(T);
    expect(written.line).toEqual({ order: "fifo", rate: 0, active: 0, ratio: 5, turn: "60s", grace: "10m" });
  });

  it("moves only a time that was touched", () => {
    const shown = sale({ opens_at: "2031-05-17T19:50:00.123+08:00" });
    const form = { ...formOf(shown), closes_at: toLocal("2031-05-17T15:30:00Z") };
    expect(fileOf(form, shown)).toMatchObject({ opens_at: shown.opens_at, closes_at: "2031-05-17T15:30:00.000Z" });
  });

  it("keeps what was typed when the sale changes, and takes over everything else", () => {
    const origin = sale({ title: { en: "Phone X", fr: "Téléphone X" } });
    const form = formOf(origin);
    const [black, white] = form.items as [FormItem, FormItem];
    const typed = {
      ...form,
      hold: "1h",
      title: { ...form.title, en: "Phone Y" },
      items: [{ ...black, stock: "700" }, white, { ...emptyItem("red"), stock: "5" }, { ...emptyItem("black") }],
    };
    const [first, second] = origin.items as [Sale["items"][0], Sale["items"][0]];
    const now = sale({
      title: { en: "Phone", zh: "手机" },
      limit: 3,
      hold: "20m0s",
      line: { ...origin.line, rate: 9 },
      closes_at: "2031-05-17T14:00:00.5Z",
      items: [
        { ...second, stock: 450 },
        { ...first, price: 1, stock: 650 },
        { id: "blue", stock: 8 },
      ],
    });
    const next = rebase(typed, origin, now);
    expect(next).toMatchObject({ hold: "1h", limit: "3", rate: "9", active: "2000", opens_at: form.opens_at });
    expect(fileOf(next, now)).toMatchObject({ title: { en: "Phone Y", zh: "手机" }, closes_at: now.closes_at });
    expect(next.items.map(({ id, stock, price }) => [id, stock, price])).toEqual([
      ["white", "450", "319900"],
      ["black", "700", "1"],
      ["blue", "8", ""],
      ["red", "5", ""],
      ["black", "", ""],
    ]);
    expect(next.items[1]?.key).toBe(black.key);
    const without = rebase({ ...form, items: [white] }, origin, now);
    expect(without.items.map(({ id }) => id)).toEqual(["white", "blue"]);
    expect(fileOf(rebase(form, origin, now), now)).toEqual(fileOf(formOf(now), now));
  });

  it("knows what cannot change while people may have joined", () => {
    expect([...fixedFields("scheduled")]).toEqual(["id"]);
    for (const state of ["lobby", "open", "paused", "closed", "recovering"] as const) {
      expect(fixedFields(state).has("opens_at")).toBe(true);
      for (const field of ["title", "closes_at", "rate", "active", "ratio", "turn", "grace", "hold"] as const) {
        expect(fixedFields(state).has(field)).toBe(false);
      }
    }
  });

  it("knows ids", () => {
    for (const id of ["a", "phone-x", "0", "a".repeat(63)]) expect(validId(id)).toBe(true);
    for (const id of ["", "-a", "A", "a_b", "a b", "手机", "a".repeat(64)]) expect(validId(id)).toBe(false);
  });
});

describe("times and lengths", () => {
  it("are local in a field, and RFC 3339 in a file", () => {
    expect(toLocal("no time")).toBe("");
    expect(fromLocal("", "2031-05-17T12:00:00Z")).toBe("");
    expect(fromLocal(toLocal("2031-05-17T12:00:07Z"))).toBe("2031-05-17T12:00:07.000Z");
    expect(toLocal("2031-05-17T12:00:07Z")).toMatch(/T\d\d:00:07$/);
    expect(toLocal("2031-05-17T12:00:00Z")).toMatch(/T\d\d:00$/);
  });

  it("are read and tidied as Go writes them", () => {
    expect(parseDuration("1h30m0s")).toBe(5_400_000);
    expect(parseDuration("1.5s")).toBe(1500);
    expect(parseDuration("250ms")).toBe(250);
    expect(parseDuration("0")).toBe(0);
    for (const text of ["", "5", "1 h", "m", "-5s"]) expect(parseDuration(text)).toBeUndefined();
    expect(tidyDuration("30m0s")).toBe("30m");
    expect(tidyDuration("1h0m5s")).toBe("1h5s");
    expect(tidyDuration("0s")).toBe("0");
    expect(tidyDuration("soon")).toBe("soon");
  });
});
