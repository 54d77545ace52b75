// What a page heard and said over its sockets, and how that is kept in test/frames for the tests that replay it.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** One shopper's connections, each with its frames in their order, and how it ended; no close = the page was left. */
export class Tape {
  connections = [];

  /** Begins a connection, and returns what takes down its frames. */
  open() {
    const connection = { frames: [] };
    this.connections.push(connection);
    return {
      hear: (text) => connection.frames.push({ heard: JSON.parse(String(text)) }),
      say: (text) => connection.frames.push({ said: JSON.parse(String(text)) }),
      close: (code, reason) => {
        connection.close = { code, reason };
      },
    };
  }

  /** All frames that were heard so far, of one type unless none is given. */
  heard(type) {
    const frames = this.connections.flatMap(({ frames }) => frames.flatMap(({ heard }) => heard ?? []));
    return type ? frames.filter((frame) => frame.type === type) : frames;
  }
}

const visits = [];

/**
 * Keeps what one page has heard so far for the recording of this journey, with what it shows now. The marks that move by
 * themselves are left out: a frame may come between the last look and the end.
 */
export function keep(who, tape, { view, number, order, status }) {
  const opened = tape.connections.filter(({ frames }) => frames.length > 0); // how often it failed is chance
  const connections = structuredClone(opened);
  visits.push({ who, connections, end: { view, number: number && Number(number), order, status } });
}

/** Writes what was kept to $RECORD/<journey>.json, if that is set. */
export function write(journey) {
  const folder = process.env.RECORD;
  if (!folder || visits.length === 0) return;
  mkdirSync(folder, { recursive: true });
  const inOrder = visits.sort((a, b) => (a.who < b.who ? -1 : 1)); // they may have gone on at the same time
  writeFileSync(join(folder, `${journey}.json`), print({ journey, visits: inOrder.map(tidy) }));
}

const START = Date.UTC(2031, 4, 17, 12); // when every recording begins

/** The fields of frames that are times. */
export const times = ["at", "opens_at", "closes_at", "lobby_at", "until", "created_at", "pay_by", "paid_at", "reset"];

/**
 * A visit as it is kept: what tells one run from another is replaced by names that are the same in every run, each
 * secret by one that is none, and all times are moved so that the first is START.
 */
function tidy(visit) {
  const first = visit.connections.flatMap(({ frames }) => frames).find(({ heard }) => heard)?.heard.at ?? START;
  const known = new Map();
  const named = (kind, value) => {
    const key = `${kind} ${value}`;
    if (!known.has(key)) known.set(key, [...known.keys()].filter((k) => k.startsWith(`${kind} `)).length + 1);
    return known.get(key);
  };
  const orderName = (id) => `019b0c5e-7d1a-7c3f-9a52-4f0e8d2b6c${10 + named("order", id)}`;
  const replace = (value, key, inside) => {
    if (typeof value === "number" && times.includes(key)) return value - first + START;
    if (typeof value === "string") {
      if (key === "token" || key === "pass") return key;
      if (key === "seat" || key === "node") return `${key}-${named(key, value)}`;
      if (key === "user") return `guest-${named(key, value)}`;
      if (key === "sale" || (key === "id" && inside === "sale")) return "phone-x";
      if (key === "order" && inside !== "line" && inside !== "lobby") return orderName(value);
      if (key === "id" && inside === "order") return orderName(value);
      if (key === "id" && (inside === "heard" || inside === "said")) return `request-${named("request", value)}`;
      return value;
    }
    if (Array.isArray(value)) return value.map((one) => replace(one, "", key));
    if (value && typeof value === "object") {
      const within = value.type === "lobby" ? "lobby" : key;
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, replace(v, k, within)]));
    }
    return value;
  };
  return replace(visit, "", "");
}

/** JSON with one frame a line, so that what changed from one recording to the next can be read. */
function print({ journey, visits }) {
  const connection = ({ frames, close }) => {
    const lines = frames.map((frame) => `            ${JSON.stringify(frame)}`).join(",\n");
    const ending = close ? `,\n          "close": ${JSON.stringify(close)}` : "";
    return `        {\n          "frames": [\n${lines}\n          ]${ending}\n        }`;
  };
  const visit = ({ who, connections, end }) =>
    `    {\n      "who": ${JSON.stringify(who)},\n      "connections": [\n${connections.map(connection).join(",\n")}\n      ],\n      "end": ${JSON.stringify(end)}\n    }`;
  return `{\n  "journey": ${JSON.stringify(journey)},\n  "visits": [\n${visits.map(visit).join(",\n")}\n  ]\n}\n`;
}
