import { defineConfig } from "vite";

// The client without its looks, for other pages: one file with a name that stays. See docs/client.md.
export default defineConfig({
  publicDir: false,
  build: {
    target: "es2022",
    outDir: "dist/client",
    reportCompressedSize: false,
    lib: { entry: "src/sluice.ts", formats: ["es"], fileName: () => "sluice.js" },
  },
});
