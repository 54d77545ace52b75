import { describe, expect, it } from "vitest";
import { EventParser, readEvents } from "../../src/console/sse.ts";

const data = (...pieces: string[]) => {
  const parser = new EventParser();
  return pieces.flatMap((piece) => parser.push(piece)).map((event) => event.data);
};

describe("the parser of a stream", () => {
  it("tells an event with the empty line after it, and not before", () => {
    expect(data('data: {"a":1}\n')).toEqual([]);
    expect(data('data: {"a":1}\n\n')).toEqual(['{"a":1}']);
    expect(data("data: 1\n\ndata: 2")).toEqual(["1"]);
  });

  it("takes the same from every way of cutting it", () => {
    for (const end of ["\n", "\r\n", "\r"]) {
      const text = [": hello", "data: one", "", "event: two", "data: 2", "data:zwei", "id: 7", "", "data", "", ""].join(
        end,
      );
      for (let i = 0; i <= text.length; i++) {
        expect(data(text.slice(0, i), text.slice(i)), `${JSON.stringify(end)} cut at ${i}`).toEqual([
          "one",
          "2\nzwei",
          "",
        ]);
      }
      expect(data(...text)).toEqual(["one", "2\nzwei", ""]);
    }
  });

  it("knows the name of an event, and forgets it with the next", () => {
    const parser = new EventParser();
    expect(parser.push("event: end\ndata: x\n\ndata: y\n\n")).toEqual([
      { event: "end", data: "x" },
      { event: "message", data: "y" },
    ]);
  });

  it("passes over comments, unknown fields, events without data, and a mark at the beginning", () => {
    expect(data("\uFEFFdata: 1\n\n")).toEqual(["1"]);
    expect(data(":\n\n: still here\n\nretry: 5\n\nevent: x\n\ndata: 2\n\n")).toEqual(["2"]);
  });

  it("keeps characters whole that were cut in two", async () => {
    const bytes = new TextEncoder().encode("data: 黑色 🎟\n\n");
    for (let i = 1; i < bytes.length; i++) {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(bytes.slice(0, i));
          controller.enqueue(bytes.slice(i));
          controller.close();
        },
      });
      const told: string[] = [];
      let heard = 0;
      await readEvents(
        body,
        (event) => told.push(event.data),
        () => heard++,
      );
      expect(told).toEqual(["黑色 🎟"]);
      expect(heard).toBe(2);
    }
  });
});
