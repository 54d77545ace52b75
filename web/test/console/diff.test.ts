import { describe, expect, it } from "vitest";
import { differences } from "../../src/console/diff.ts";
import { speak } from "../../src/console/lang/index.ts";
import { fieldWords, valueWords } from "../../src/console/views/words.ts";
import { file } from "./sample.ts";

const [black, white] = file().items as [ReturnType<typeof file>["items"][0], ReturnType<typeof file>["items"][0]];

describe("what a change changed", () => {
  it("is nothing where nothing differs, however it is written", () => {
    expect(differences(file(), file())).toEqual([]);
    expect(differences(file(), file({ closes_at: "2031-05-17T21:00:00+08:00" }))).toEqual([]);
    expect(differences(file({ title: "Phone" }), file({ title: { "": "Phone" } }))).toEqual([]);
  });

  it("is each field, before and after", () => {
    const line = { ...file().line, rate: 0, turn: "2m0s" };
    expect(differences(file(), file({ closes_at: "2031-05-17T14:00:00Z", line, hold: "0s" }))).toEqual([
      { field: "closes_at", before: "2031-05-17T13:00:00.000Z", after: "2031-05-17T14:00:00.000Z" },
      { field: "hold", before: "15m0s", after: "0s" },
      { field: "rate", before: 500, after: 0 },
      { field: "turn", before: "1m0s", after: "2m0s" },
    ]);
  });

  it("names the item and the language", () => {
    const items = [{ ...black, stock: 700, title: { en: "Black", zh: "午夜黑" } }, white];
    expect(differences(file(), file({ items }))).toEqual([
      { field: "stock", item: "black", before: 600, after: 700 },
      { field: "title", item: "black", language: "zh", before: "黑色", after: "午夜黑" },
    ]);
  });

  it("shows items that came, went, or changed places", () => {
    const red = { id: "red", stock: 5 };
    expect(differences(file(), file({ items: [black, red] }))).toEqual([
      { field: "stock", item: "white", before: 400, after: undefined },
      { field: "title", item: "white", language: "en", before: "White", after: undefined },
      { field: "title", item: "white", language: "zh", before: "白色", after: undefined },
      { field: "price", item: "white", before: 319900, after: undefined },
      { field: "stock", item: "red", before: undefined, after: 5 },
    ]);
    expect(differences(file(), file({ items: [white, black] }))).toEqual([
      { field: "items", before: "black, white", after: "white, black" },
    ]);
  });

  it("is everything of a sale that was made", () => {
    const found = differences(null, file());
    expect(found.every(({ before }) => before === undefined)).toBe(true);
    expect(found.map(({ field }) => field)).toContain("opens_at");
  });

  it("is told in words, in both languages", () => {
    const [en, zh] = [speak("en"), speak("zh")];
    const stock = { field: "stock", item: "black", before: 600, after: 1700 } as const;
    expect(fieldWords(stock, en)).toBe("Stock (black)");
    expect(fieldWords(stock, zh)).toBe("库存（black）");
    expect(fieldWords({ field: "title", item: "black", language: "zh", before: "", after: "" }, en)).toBe(
      "Title (black, 中文)",
    );
    expect(valueWords("stock", 1700, "CNY", en)).toBe("1,700");
    expect(valueWords("price", 299900, "CNY", en)).toBe("¥2,999");
    expect(valueWords("rate", 0, "CNY", en)).toBe("no cap");
    expect(valueWords("hold", "1h30m0s", "CNY", en)).toBe("1 hr 30 min");
    expect(valueWords("hold", "0s", "CNY", zh)).toBe("0秒");
    expect(valueWords("currency", undefined, "CNY", zh)).toBe("无");
    expect(valueWords("order", "lottery", "CNY", zh)).toContain("抽签");
  });
});
