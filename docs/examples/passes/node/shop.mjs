// The back end of a shop that serves only those who hold a pass of a sale of Sluice. It verifies passes by itself, with
// what Node has: Sluice is asked for its public keys and for nothing else.
//
//   SLUICE=https://sale.example SALE=phone-x node shop.mjs

import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";

const { SLUICE = "http://127.0.0.1:8080", SALE = "phone-x", ISSUER = "sluice", PORT = "3000", KEYS_AGE = "300" } = process.env;

const LEEWAY = 2; // seconds by which clocks may differ

// The public keys of Sluice, by name. They change when an operator changes secrets: one that was withdrawn must not count for
// ever, so all are read again every few minutes, and a name that is not known is looked up, but not more often than every half
// minute, because anybody can make up names.
let keys = new Map();
let next = 0; // before which they are not looked up again
let reading = Promise.resolve(); // one for all who wait for it

/** What is thrown about a pass that may be a good one: there are no keys to tell. */
class Unknown extends Error {}

async function keyOf(kid) {
  if (!keys.has(kid)) {
    if (performance.now() >= next) {
      next = performance.now() + 30_000;
      readAgain();
    }
    await reading; // whose failure is no matter of those whose key is known
  }
  return keys.get(kid);
}

/** Reads after those who are reading: an answer of before must not replace that of afterwards. */
function readAgain() {
  reading = reading.then(load, load);
  reading.catch(() => {}); // load has logged it, and while keys cannot be read those that are known count
}

async function load() {
  try {
    const answer = await fetch(`${SLUICE}/.well-known/jwks.json`, { signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(`${answer.url} answers ${answer.status}`);
    const set = await answer.json();
    const jwks = set.keys.filter((jwk) => jwk.kty === "OKP" && jwk.crv === "Ed25519");
    if (!jwks.length) throw new Error(`${answer.url} has none`);
    const found = new Map(jwks.map((jwk) => [jwk.kid, keyFrom(jwk)]).filter(([, key]) => key));
    if (!found.size) throw new Error(`${answer.url} has none that can be read`);
    keys = found;
  } catch (error) {
    console.error(`the keys of Sluice cannot be read: ${error.cause?.message || error.message}`);
    next = performance.now() + 1000;
    throw new Unknown();
  }
}

function keyFrom(jwk) {
  try {
    return createPublicKey({ key: jwk, format: "jwk" });
  } catch {
    return undefined; // one that is none is no reason to keep others of before
  }
}

/** What a part of a pass says. The error of the parser would repeat it, and what strangers write belongs into no log. */
function parse(part) {
  try {
    return Object(JSON.parse(Buffer.from(part, "base64url").toString()));
  } catch {
    throw new Error("it is none");
  }
}

/** What the pass says; it throws why that does not count, or Unknown. */
async function read(pass) {
  const parts = pass.split(".");
  if (parts.length !== 3 || pass.length > 4096 || !parts.every((part) => /^[\w-]+$/.test(part))) throw new Error("it is none");
  const header = parse(parts[0]);
  // Never the algorithm that the pass asks for: "none" is one, and HS256 would take the public key for a secret.
  if (header.alg !== "EdDSA" || typeof header.kid !== "string") throw new Error("it is not signed by EdDSA, with the name of a key");
  const key = await keyOf(header.kid);
  if (!key) throw new Error("it names a key that Sluice does not have");
  const signature = Buffer.from(parts[2], "base64url");
  // One pass has one form: what decodes to the same bytes is not the same pass.
  if (signature.toString("base64url") !== parts[2] || !verify(null, Buffer.from(`${parts[0]}.${parts[1]}`), key, signature)) {
    throw new Error("its signature is wrong");
  }
  const claims = parse(parts[1]);
  const { iss, aud, sale, sub, exp, nbf } = claims;
  const now = Date.now() / 1000;
  // Of this installation, and of this sale: a turn in one is none in another.
  if (iss !== ISSUER || aud !== SALE || sale !== SALE) {
    const quoted = JSON.stringify;
    throw new Error(`its issuer is ${quoted(iss)} and its sale ${quoted(sale)}; ISSUER is ${quoted(ISSUER)} and SALE ${quoted(SALE)}`);
  }
  if (typeof sub !== "string") throw new Error("it is of nobody");
  if (typeof exp !== "number" || now >= exp + LEEWAY) throw new Error("it has expired, or would hold for ever");
  if (nbf > now + LEEWAY) throw new Error("it does not hold yet");
  return claims;
}

let said = -Infinity; // when a refusal was logged; once a second, or strangers could fill the log

const server = createServer(async (request, answer) => {
  const { authorization = "", "x-sluice-pass": shown } = request.headers;
  const pass = shown ?? authorization.replace(/^Bearer /, "");
  answer.setHeader("Content-Type", "application/json");
  answer.setHeader("Cache-Control", "no-store");
  try {
    const claims = await read(pass);
    answer.end(`${JSON.stringify({ user: claims.sub, seat: claims.seat, order: claims.order ?? "" })}\n`);
  } catch (error) {
    if (error instanceof Unknown) {
      answer.writeHead(503, { "Retry-After": "1" });
      answer.end('{"error":"passes cannot be checked right now"}\n');
      return;
    }
    if (pass && performance.now() - said > 1000) {
      said = performance.now();
      console.error(`a pass was refused: ${error.message}`);
    }
    answer.statusCode = 401;
    answer.end('{"error":"a pass of this sale is needed"}\n');
  }
});

if (!/^[1-9]\d{0,4}$/.test(KEYS_AGE) || KEYS_AGE > 86_400) throw new Error("KEYS_AGE must be 1 to 86400 seconds");
const refresh = () => {
  readAgain();
  const later = () => setTimeout(refresh, KEYS_AGE * 1000); // after this reading, or a Sluice that hangs would be waited for again and again
  reading.then(later, later);
};
setTimeout(refresh, KEYS_AGE * 1000);

server.on("error", (error) => {
  console.error(`PORT ${PORT}: ${error.message}`);
  process.exit(1);
});
server.listen(Number(PORT), "127.0.0.1", () => {
  console.error(`listening on http://127.0.0.1:${server.address().port}`);
});
