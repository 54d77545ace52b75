import preact from "@preact/preset-vite";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const server = "127.0.0.1:8080";

export default defineConfig({
  plugins: [preact({ devToolsEnabled: false }), withoutPreload(), withConsole()],
  // Every file has its hash in its name and is a file: the policy of the page allows nothing inline.
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, reportCompressedSize: false },
  server: { proxy: { "/api": `http://${server}`, "/ws": { target: `ws://${server}`, ws: true } } },
  test: { environment: "happy-dom", include: ["test/**/*.test.{ts,tsx}"] },
});

/**
 * Leaves out the code that fetches the styles of a part of the page before the part itself: what this page fetches late
 * has none, and the code would be a fortieth of all that a shopper loads.
 */
function withoutPreload(): Plugin {
  return {
    name: "without-preload",
    enforce: "pre",
    load: (id) => (id === "\0vite/preload-helper.js" ? "export const __vitePreload = (load) => load();" : null),
  };
}

/** `vite dev` answers below /admin with the operator's console, as a node does: see embed.go. */
function withConsole(): Plugin {
  return {
    name: "with-console",
    configureServer({ middlewares }) {
      middlewares.use((request, _, next) => {
        if (/^\/admin(\/|\?|$)/.test(request.url ?? "")) request.url = "/admin.html";
        next();
      });
    },
  };
}
