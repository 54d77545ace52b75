// A stub of the server that plays scenes: open /s/<scene>. It serves the built page with the real page's policy, so that
// what would be blocked there is blocked here.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { listOf, scenes } from "./scenes.mjs";

const types = { ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html" };
const policy =
  "default-src 'self'; connect-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/**
 * Starts the stage on a free port, or the one given; returns its address, what has been played since somebody set that to
 * nothing (frames that were told and asked), and what ends it.
 */
export async function openStage(port = 0) {
  const options = { sales: "some", guests: true };
  const played = { asked: 0, told: 0 };
  const server = createServer((request, response) => answer(request, response, options));
  const sockets = new WebSocketServer({ server, handleProtocols: () => "sluice.v1" });
  sockets.on("connection", (socket, request) =>
    play(socket, new URL(request.url, "http://stage").pathname.split("/").at(-1), played),
  );
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const close = () => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, options, played, close };
}

function answer(request, response, options) {
  const { pathname } = new URL(request.url, "http://stage");
  const json = (status, body) => {
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify(body));
  };
  const now = Date.now();
  if (pathname === "/api/v1/guests") {
    if (!options.guests) return json(403, { code: "forbidden" });
    return json(200, { user: "guest-1", token: "a.b.c", expires_at: now + 86_400_000 });
  }
  if (pathname === "/api/v1/sales") {
    if (options.sales === "broken") return json(503, { code: "unavailable" });
    return json(200, { sales: options.sales === "none" ? [] : listOf(now), server_time: now });
  }
  const isFile = pathname.startsWith("/assets/");
  try {
    const body = readFileSync(new URL(`../dist${isFile ? pathname : "/index.html"}`, import.meta.url));
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

function play(socket, name, played) {
  const scene = scenes[name];
  const send = (frame) => {
    socket.send(JSON.stringify(frame));
    played.told++;
  };
  if (!scene) return socket.close(4404, "no such sale");
  socket.on("message", (data) => {
    const frame = JSON.parse(String(data));
    const now = Date.now();
    played.asked++;
    if (frame.type === "leave") return socket.close(1000, "you have left the line");
    if (frame.type === "grab") {
      for (const reply of scene.answer?.(now) ?? []) send(reply.type === "order" ? reply : { ...reply, id: frame.id });
      return;
    }
    if (scene.silent || (scene.once && frame.seat)) return; // who comes back meets silence, so that the banner stays
    for (const told of [scene.frames?.(now) ?? []].flat()) send(told);
    const { close } = scene;
    if (close) setTimeout(() => socket.close(close.code, close.reason), scene.once ? 150 : 0);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await openStage(Number(process.env.PORT ?? 8090));
  console.log(
    `${url}/\n${Object.keys(scenes)
      .map((name) => `${url}/s/${name}`)
      .join("\n")}`,
  );
}
