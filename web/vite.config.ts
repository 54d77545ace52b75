import preact from "@preact/preset-vite";
import { defineConfig } from "vitest/config";

const server = "127.0.0.1:8080";

export default defineConfig({
  plugins: [preact({ devToolsEnabled: false })],
  // Every file has its hash in its name and is a file: the policy of the page allows nothing inline.
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, reportCompressedSize: false },
  server: { proxy: { "/api": `http://${server}`, "/ws": { target: `ws://${server}`, ws: true } } },
  test: { environment: "happy-dom", include: ["test/**/*.test.{ts,tsx}"] },
});
