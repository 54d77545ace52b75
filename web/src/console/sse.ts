/** One event of a stream: its name ("message" when it has none) and its data. */
export interface StreamEvent {
  event: string;
  data: string;
}

/**
 * Reads the lines of a text/event-stream as it comes in, cut anywhere: inside a line, between CR and LF, between two
 * events. An event is complete with the empty line after it; one that the stream ends in is not told.
 */
export class EventParser {
  private rest = "";
  private first = true;
  private skipLF = false; // the last piece ended in CR, so a LF at the beginning of the next belongs to it
  private event = "";
  private data: string[] = [];

  push(piece: string): StreamEvent[] {
    if (piece === "") return [];
    if (this.skipLF && piece.startsWith("\n")) piece = piece.slice(1);
    this.skipLF = piece === "" ? false : piece.endsWith("\r");
    const lines = (this.rest + piece).split(/\r\n|\r|\n/);
    this.rest = lines.pop() ?? "";
    const events: StreamEvent[] = [];
    for (const line of lines) {
      const done = this.line(this.first ? line.replace(/^\uFEFF/, "") : line);
      this.first = false;
      if (done) events.push(done);
    }
    return events;
  }

  private line(line: string): StreamEvent | undefined {
    if (line === "") {
      const event = { event: this.event || "message", data: this.data.join("\n") };
      const empty = this.data.length === 0;
      this.event = "";
      this.data = [];
      return empty ? undefined : event;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return undefined; // a comment, which keeps proxies from closing the connection
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    if (field === "event") this.event = value;
    return undefined;
  }
}

/** Reads a body to its end and tells each event as soon as it is complete. */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  tell: (event: StreamEvent) => void,
  heard: () => void = () => {},
): Promise<void> {
  const parser = new EventParser();
  const decoder = new TextDecoder(); // keeps a character that is cut in two
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    for (const event of parser.push(decoder.decode(value, { stream: true }))) tell(event);
  }
}
