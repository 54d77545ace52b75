// Says how much a shopper's phone has to fetch, and fails above the limit: in a rush every kilobyte is paid by everybody.
// Counted is all that the shopper's page can come to load, also what it fetches only when it is asked for (the code for
// another device, the check of a draw), in the language that takes the most.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 30 * 1024;
const dist = new URL("../dist/", import.meta.url);
const assets = readdirSync(new URL("assets/", dist)).filter((name) => /\.(js|css)$/.test(name));
const languages = readdirSync(new URL("../src/lang/", import.meta.url))
  .map((name) => name.replace(/\.ts$/, ""))
  .filter((tag) => tag !== "index");

/** The files that a file names. */
const namedIn = (path) => {
  const text = readFileSync(new URL(path, dist), "utf8");
  return assets.filter((name) => text.includes(name));
};
const reached = new Set();
const todo = namedIn("index.html");
const first = new Set(todo);
while (todo.length > 0) {
  const name = todo.pop();
  if (reached.has(name)) continue;
  reached.add(name);
  todo.push(...namedIn(`assets/${name}`));
}

const size = (name) => gzipSync(readFileSync(new URL(`assets/${name}`, dist)), { level: 9 }).length;
const isLanguage = (name) => languages.some((tag) => name.startsWith(`${tag}-`));
const sum = (names) => names.reduce((total, name) => total + size(name), 0);
const all = [...reached].sort();
for (const name of all) console.log(`${name}  ${size(name)} bytes gzip`);
const tongues = all.filter(isLanguage);
const tongue = Math.max(...tongues.map(size));
const total = sum(all.filter((name) => !isLanguage(name))) + tongue;
console.log(`at first: ${sum([...first]) + tongue} bytes gzip, with one language`);
console.log(`JS + CSS of the shopper's page: ${total} of at most ${LIMIT} bytes gzip`);
if (tongues.length !== languages.length || total > LIMIT) process.exit(1);
