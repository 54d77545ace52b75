// A stub of the operator's API that plays sample data to the built console, with the real page's policy, so that what would
// be blocked there is blocked here. Any token but "wrong" is good. What is saved is kept until the stage ends. The stream begins with ten minutes of the past, which
// a real one does not, so that the charts of a picture have something to show.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { aboutOf, archivedOf, frameOf, logOf, ordersOf, saleOf, salesOf, scenes } from "./console-scenes.mjs";

const types = { ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html" };
const policy =
  "default-src 'self'; connect-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const PAST_S = 595;

/** Starts the stage on a free port, or the one given; returns its address and what ends it. */
export async function openConsoleStage(port = 0) {
  const options = { sales: "some", refuse: "", saved: new Map() };
  const server = createServer((request, response) => {
    answer(request, response, options).catch((error) => response.destroy(error));
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, options, close };
}

async function answer(request, response, options) {
  const { pathname, searchParams } = new URL(request.url, "http://stage");
  if (!pathname.startsWith("/api/")) return page(pathname, response);
  const json = (status, body) => {
    response.writeHead(status, { "Content-Type": status < 400 ? "application/json" : "application/problem+json" });
    response.end(JSON.stringify(body));
  };
  const problem = (status, code, detail) =>
    json(status, { type: `urn:sluice:problem:${code}`, title: code, status, code, detail });
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  if (!token || token === "wrong")
    return problem(401, "unauthenticated", "this needs the admin token as a bearer token");
  const now = Date.now();
  const [, id, what] = /^\/api\/v1\/admin\/sales\/([^/]+)\/?(.*)$/.exec(pathname) ?? [];
  if (pathname === "/api/v1/admin/about") return json(200, aboutOf(now));
  if (pathname === "/api/v1/admin/audit-log") return json(200, logOf(now, searchParams.get("sale")));
  if (pathname === "/api/v1/admin/sales") {
    if (options.sales === "broken") return problem(503, "unavailable", "the database does not answer right now");
    const list = searchParams.get("archived") === "true" ? archivedOf : salesOf;
    return json(200, { sales: options.sales === "none" ? [] : list(now) });
  }
  if (!id) return problem(404, "not_found", "there is nothing at this address");
  const { saved } = options;
  if (request.method === "PUT") {
    const file = JSON.parse(await bodyOf(request));
    const [status, body] = checked(id, file, now);
    if (status === 200 && !searchParams.has("dry_run")) saved.set(id, file);
    return json(status, body);
  }
  const scene = sceneOf(id, saved);
  if (!scene) return problem(404, "no_such_sale", `there is no sale "${id}"`);
  if (what === "live") return live(id, response, scene);
  if (what === "orders") return json(200, ordersOf(now, searchParams));
  if (what === "orders.csv") {
    response.writeHead(200, { "Content-Type": "text/csv" });
    return response.end("id,sale,item,user,qty,status,created_at,pay_by,paid_at\r\n");
  }
  if (request.method === "GET") return json(200, saleOf(id, now, saved.get(id)));
  if (options.refuse) return problem(409, "conflict", options.refuse);
  json(200, saleOf(id, now));
}

/** What is played of a sale: of one that was saved, what was; undefined = there is no such sale. */
function sceneOf(id, saved) {
  const file = saved.get(id);
  if (!file) return Object.hasOwn(scenes, id) ? scenes[id] : undefined;
  const state = scenes[id] ? {} : { state: "scheduled" };
  return { ...scenes[id], sale: () => ({ ...scenes[id]?.sale?.(Date.now()), ...state, ...file }) };
}

/** The one rule of the real checks that a picture shows. */
function checked(id, file, now) {
  const limit = Number(file.limit);
  if (limit >= 1 && limit <= 1000) return [200, saleOf(id, now, file)];
  const detail = `line 1: limit must be a whole number from 1 to 1000, not ${JSON.stringify(file.limit)}`;
  return [422, { type: "urn:sluice:problem:invalid", title: "Invalid", status: 422, code: "invalid", detail }];
}

/** Streams frames, cut into pieces at odd places as a network would. */
function live(id, response, scene) {
  const start = Date.now();
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  const send = (t) => {
    const text = `data: ${JSON.stringify(frameOf(id, start, t, scene))}\n\n`;
    const cut = Math.floor(text.length / 3);
    response.write(text.slice(0, cut));
    response.write(text.slice(cut));
  };
  for (let t = -PAST_S; t <= 0; t++) send(t);
  if (scene.quiet) return;
  let t = 0;
  const timer = setInterval(() => send(++t), 1000);
  response.on("close", () => clearInterval(timer));
}

async function bodyOf(request) {
  let text = "";
  for await (const piece of request) text += piece;
  return text;
}

function page(pathname, response) {
  const isFile = pathname.startsWith("/assets/");
  try {
    const body = readFileSync(new URL(`../dist${isFile ? pathname : "/admin.html"}`, import.meta.url));
    response.writeHead(200, {
      "Content-Type": types[isFile ? extname(pathname) : ".html"],
      "Content-Security-Policy": policy,
    });
    response.end(body);
  } catch {
    response.writeHead(404);
    response.end();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await openConsoleStage(Number(process.env.PORT ?? 8091));
  console.log([`${url}/admin`, ...Object.keys(scenes).map((name) => `${url}/admin/s/${name}`)].join("\n"));
}
