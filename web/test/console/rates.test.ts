import { describe, expect, it } from "vitest";
import { History, SPAN_S } from "../../src/console/history.ts";
import { limitedSum, Rates } from "../../src/console/rates.ts";
import { frame, node, sale, T } from "./sample.ts";

const s = 1000;
const counted = (at: number, success: number, change = {}) => node({ at, grabs: { success }, limited: {}, ...change });

describe("rates from counters", () => {
  it("are not known before there are two figures to compare", () => {
    const rates = new Rates();
    expect(rates.next(T, [counted(T, 5000)])).toBeUndefined();
    expect(rates.next(T + s, [counted(T + s, 5100)])?.grabs.success).toBe(100);
  });

  it("add up over nodes, and go by each node's own clock", () => {
    const rates = new Rates();
    rates.next(T, [counted(T, 10), counted(T - 500, 70, { node: "b" })]);
    const { grabs } = rates.next(T + s, [counted(T + s, 20), counted(T + 1500, 110, { node: "b" })]) ?? {};
    expect(grabs?.success).toBe(10 + 20);
  });

  it("are those of the last five seconds", () => {
    const rates = new Rates();
    for (let i = 0; i <= 10; i++) rates.next(T + i * s, [counted(T + i * s, i * 100)]);
    let last: number | undefined;
    for (let i = 11; i <= 20; i++) last = rates.next(T + i * s, [counted(T + i * s, 1000)])?.grabs.success;
    expect(last).toBe(0);
  });

  it("do not fall when the same figures come again", () => {
    const rates = new Rates();
    rates.next(T, [counted(T, 0)]);
    rates.next(T + s, [counted(T + s, 50)]);
    expect(rates.next(T + 2 * s, [counted(T + s, 50)])?.grabs.success).toBe(50);
  });

  it("take a restart as a beginning from nothing", () => {
    const rates = new Rates();
    rates.next(T, [counted(T, 90_000)]);
    rates.next(T + s, [counted(T + s, 90_100)]);
    const after = rates.next(T + 4 * s, [counted(T + 4 * s, 60, { started: T + 2 * s })]);
    expect(after?.grabs.success).toBe(30);
  });

  it("do not take the past of a node that comes in as something that happens now", () => {
    const rates = new Rates();
    rates.next(T, [counted(T, 0)]);
    rates.next(T + s, [counted(T + s, 10)]);
    expect(
      rates.next(T + 2 * s, [counted(T + 2 * s, 20), counted(T + 2 * s, 80_000, { node: "b" })])?.grabs.success,
    ).toBe(10);
    const fresh = counted(T + 3 * s, 40, { node: "c", started: T + 2.5 * s });
    expect(rates.next(T + 3 * s, [counted(T + 3 * s, 30), fresh])?.grabs.success).toBe(10 + 80);
  });

  it("forget a node that fell silent or went away", () => {
    const rates = new Rates();
    rates.next(T, [counted(T, 0)]);
    rates.next(T + s, [counted(T + s, 10)]);
    expect(rates.next(T + 9 * s, [counted(T + s, 10)])?.grabs.success).toBe(0);
    expect(rates.next(T + 10 * s, [])).toBeUndefined();
  });

  it("take no clock of a node for another's", () => {
    const rates = new Rates();
    const off = (at: number, success: number) => counted(at - 3_600 * s, success, { started: T - 7_200 * s });
    rates.next(T, [off(T, 0)]);
    expect(rates.next(T + s, [off(T + s, 10)])?.grabs.success).toBe(10);
    expect(rates.heard("a")).toBe(T + s);
    const ahead = counted(T + 600 * s, 80_000, { node: "b", started: T + 60 * s });
    expect(rates.next(T + 2 * s, [off(T + s, 10), ahead])?.grabs.success, "it has a past").toBe(10);
    expect([rates.heard("a"), rates.heard("b")]).toEqual([T + s, T + 2 * s]);
    expect(rates.next(T + 9 * s, [off(T + s, 10)])?.grabs.success).toBe(0);
  });

  it("begin anew where a counter goes back without a restart", () => {
    const rates = new Rates();
    rates.next(T, [counted(T, 500)]);
    rates.next(T + s, [counted(T + s, 600)]);
    expect(rates.next(T + 2 * s, [counted(T + 2 * s, 5)])).toBeUndefined();
    expect(rates.next(T + 3 * s, [counted(T + 3 * s, 8)])?.grabs.success).toBe(3);
  });

  it("count what limits refuse, too", () => {
    const rates = new Rates();
    rates.next(T, [node({ limited: { user: 7 } })]);
    expect(rates.next(T + s, [node({ at: T + s, limited: { user: 9, node: 1 } })])?.limited).toEqual({
      user: 2,
      address: 0,
      node: 1,
    });
    expect(limitedSum([node(), node({ limited: { user: 1, address: 2 } })])).toEqual({ user: 8, address: 2, node: 0 });
  });
});

describe("the last minutes", () => {
  const at = (seconds: number, change = {}) =>
    frame({ at: T + seconds * s, nodes: [counted(T + seconds * s, seconds)], ...change });

  it("have a column for each series, as long as the time", () => {
    const history = new History();
    history.add(at(0));
    history.add(
      at(1, { line: { ...frame().line, waiting: 9, granted: 5263 }, orders: { ...frame().orders, written: null } }),
    );
    expect(history.column("waiting")).toEqual([18240, 9]);
    expect(history.column("admitted")).toEqual([null, 50]);
    expect(history.column("grabs success")).toEqual([null, 1]);
    expect(history.column("item black")).toEqual([412, 412]);
    expect(history.column("under_way")).toEqual([8, null]);
    expect(history.column("no such")).toEqual([null, null]);
    expect(history.peak("waiting")).toBe(18240);
    expect(history.peak("no such")).toBeUndefined();
  });

  it("break the line where figures are missing", () => {
    const history = new History();
    history.add(at(0));
    history.add(at(20, { line: null }));
    history.add(at(20));
    expect(history.at).toHaveLength(3);
    expect(history.column("waiting")).toEqual([18240, null, null]);
    expect(history.column("item black")).toEqual([412, null, 412]);
  });

  it("do not show a loss of the line as a fall", () => {
    const history = new History();
    history.add(at(0));
    history.add(at(1, { line: { ...frame().line, granted: 5300 } }));
    history.add(at(2, { line: { ...frame().line, granted: 9000 }, sale: sale({ epoch: 2 }) }));
    expect(history.admitted).toBeUndefined();
    history.add(at(3, { line: { ...frame().line, granted: 9010 }, sale: sale({ epoch: 2 }) }));
    expect(history.admitted).toBe(10);
  });

  it("begin anew when the clock was set back", () => {
    const history = new History();
    history.add(at(0));
    history.add(at(100));
    history.add(at(40));
    expect(history.at).toEqual([T / s + 40]);
    expect(history.column("waiting")).toEqual([18240]);
  });

  it("forget what is older than the charts go back", () => {
    const history = new History();
    for (let i = 0; i <= SPAN_S + 50; i++) history.add(at(i));
    expect(history.at).toHaveLength(SPAN_S + 1);
    for (const column of history.columns.values()) expect(column).toHaveLength(SPAN_S + 1);
  });
});
