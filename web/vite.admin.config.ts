import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

// The operator's console, built by itself: in one build with the shopper's page the two would share files, and shoppers
// would have another one to fetch, with parts of it that only the console needs.
export default defineConfig({
  plugins: [preact({ devToolsEnabled: false })],
  publicDir: false,
  build: {
    target: "es2022",
    assetsInlineLimit: 0, // the policy of the page allows nothing inline
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    emptyOutDir: false, // it goes beside the shopper's page
    rollupOptions: { input: "admin.html" },
  },
});
