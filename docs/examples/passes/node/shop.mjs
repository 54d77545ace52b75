// The back end of a shop that serves only those who hold a pass of a sale of Sluice. It verifies passes by itself, with
// what Node has: Sluice is asked for its public keys and for nothing else.
//
//   SLUICE=https://sale.example SALE=phone-x node shop.mjs

import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";

const { SLUICE = "http://127.0.0.1:8080", SALE = "phone-x", ISSUER = "sluice", PORT = "3000" } = process.env;

const LEEWAY = 2; // seconds by which clocks may differ

// The public keys of Sluice, by name. They change when an operator changes secrets, so a name that is not known is looked
// up, but not more often than every half minute: anybody can make up names.
let keys = new Map();
let looked = -Infinity;
let looking = Promise.resolve();

async function keyOf(kid) {
  if (!keys.has(kid)) {
    if (performance.now() - looked > 30_000) {
      looked = performance.now();
      looking = load();
    }
    await looking; // whose failure is no matter of those whose key is known
  }
  return keys.get(kid);
}

async function load() {
  const answer = await fetch(`${SLUICE}/.well-known/jwks.json`, { signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(`the keys of Sluice: ${answer.status}`);
  const set = await answer.json();
  keys = new Map(
    set.keys
      .filter((jwk) => jwk.kty === "OKP" && jwk.crv === "Ed25519")
      .map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: "jwk" })]),
  );
}

/** What the pass says, or undefined when it is not one of this sale that holds now. */
async function read(pass) {
  const parts = pass.split(".");
  if (parts.length !== 3 || pass.length > 4096 || !parts.every((part) => /^[\w-]+$/.test(part))) return undefined;
  try {
    const header = JSON.parse(Buffer.from(parts[0], "base64url").toString());
    // Never the algorithm that the pass asks for: "none" is one, and HS256 would take the public key for a secret.
    if (header.alg !== "EdDSA" || typeof header.kid !== "string") return undefined;
    const key = await keyOf(header.kid);
    const signature = Buffer.from(parts[2], "base64url");
    // One pass has one form: what decodes to the same bytes is not the same pass.
    if (!key || signature.toString("base64url") !== parts[2]) return undefined;
    if (!verify(null, Buffer.from(`${parts[0]}.${parts[1]}`), key, signature)) return undefined;
    const claims = JSON.parse(Buffer.from(parts[1], "base64url").toString());
    const now = Date.now() / 1000;
    const good =
      claims.iss === ISSUER && // of this installation
      claims.aud === SALE && // of this sale: a turn in one is none in another
      claims.sale === SALE &&
      typeof claims.sub === "string" &&
      typeof claims.exp === "number" && // a pass without an end would be one for ever
      now < claims.exp + LEEWAY &&
      !(claims.nbf > now + LEEWAY);
    return good ? claims : undefined;
  } catch {
    return undefined; // no JSON, or no keys
  }
}

const server = createServer(async (request, answer) => {
  const { authorization = "", "x-sluice-pass": shown } = request.headers;
  const claims = await read(shown ?? authorization.replace(/^Bearer /, ""));
  answer.setHeader("Content-Type", "application/json");
  answer.setHeader("Cache-Control", "no-store");
  if (!claims) {
    answer.statusCode = 401;
    answer.end('{"error":"a pass of this sale is needed"}\n');
    return;
  }
  answer.end(`${JSON.stringify({ user: claims.sub, seat: claims.seat, order: claims.order ?? "" })}\n`);
});

server.listen(Number(PORT), "127.0.0.1", () => {
  console.error(`listening on http://127.0.0.1:${server.address().port}`);
});
