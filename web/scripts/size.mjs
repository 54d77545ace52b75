// Says how much a shopper's phone has to fetch, and fails above the limit: in a rush every kilobyte is paid by everybody.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 30 * 1024;
const assets = new URL("../dist/assets/", import.meta.url);
let sum = 0;
for (const name of readdirSync(assets).sort()) {
  if (!/\.(js|css)$/.test(name)) continue;
  const size = gzipSync(readFileSync(new URL(name, assets)), { level: 9 }).length;
  sum += size;
  console.log(`${name}  ${size} bytes gzip`);
}
console.log(`JS + CSS: ${sum} of at most ${LIMIT} bytes gzip`);
if (sum === 0 || sum > LIMIT) process.exit(1);
