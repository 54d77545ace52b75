// The frames of test/frames, as scenes are made of them.
import { readdirSync, readFileSync } from "node:fs";
import { times } from "./recording.mjs";

const folder = new URL("../test/frames/", import.meta.url);
const recordings = readdirSync(folder).map((file) => JSON.parse(readFileSync(new URL(file, folder), "utf8")));

function visit(journey, who) {
  const found = recordings.find((one) => one.journey === journey)?.visits.find((one) => one.who === who);
  if (!found) throw new Error(`there is no recording of ${journey}: ${who}`);
  return found;
}

/** Says whether a frame is of a type, with those fields; of an order, with that status. */
export const is =
  (type, { status, ...fields } = {}) =>
  (frame) =>
    frame.type === type &&
    (status === undefined || frame.order.status === status) &&
    Object.entries(fields).every(([field, value]) => frame[field] === value);

/** What was heard on a connection up to the first frame that is looked for. */
function upTo(journey, who, wanted) {
  for (const { frames } of visit(journey, who).connections) {
    const heard = frames.flatMap(({ heard }) => heard ?? []);
    const end = heard.findIndex(wanted);
    if (end >= 0) return heard.slice(0, end + 1);
  }
  throw new Error(`${journey}: ${who} heard no such frame`);
}

/** Moves all times in a frame. */
function moved(value, by) {
  if (Array.isArray(value)) return value.map((one) => moved(one, by));
  if (!value || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, v]) => [
      key,
      typeof v === "number" && times.includes(key) ? v + by : moved(v, by),
    ]),
  );
}

/**
 * A moment of a recording: from the last welcome (and what came right before it) to the frame that is looked for, without the positions in between; as it
 * would be now. A change makes another frame of any of them.
 */
export function moment(journey, who, wanted, change = (frame) => frame) {
  const heard = upTo(journey, who, wanted);
  const welcome = heard.findLastIndex(is("welcome"));
  const since = heard.slice(welcome > 0 && is("stale")(heard[welcome - 1]) ? welcome - 1 : welcome);
  const position = since.findLastIndex(({ type }) => type === "queued" || type === "lobby");
  const frames = since.filter(({ type }, i) => i === position || (type !== "queued" && type !== "lobby"));
  return (now) => frames.map((frame) => change(moved(frame, now - frames.at(-1).at)));
}

/** One frame of a recording, as it would be now. */
export function frame(journey, who, wanted, change = (frame) => frame) {
  const last = upTo(journey, who, wanted).at(-1);
  return (now) => change(moved(last, now - last.at));
}

/** How a connection ended. */
export const ending = (journey, who) => visit(journey, who).connections.at(-1).close;
