import preact from "@preact/preset-vite";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const server = "127.0.0.1:8080";

/** `vite dev` answers below /admin with the operator's console, as a node does: see embed.go. */
const admin: Plugin = {
  name: "admin",
  configureServer({ middlewares }) {
    middlewares.use((request, _, next) => {
      if (/^\/admin(\/|\?|$)/.test(request.url ?? "")) request.url = "/admin.html";
      next();
    });
  },
};

export default defineConfig({
  plugins: [preact({ devToolsEnabled: false }), admin],
  // Every file has its hash in its name and is a file: the policy of the page allows nothing inline.
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, reportCompressedSize: false },
  server: { proxy: { "/api": `http://${server}`, "/ws": { target: `ws://${server}`, ws: true } } },
  test: { environment: "happy-dom", include: ["test/**/*.test.{ts,tsx}"] },
});
