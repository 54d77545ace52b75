// The build is committed, since Go embeds it. This builds again into a folder of its own and fails when the two differ.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));
const fresh = mkdtempSync(join(tmpdir(), "sluice-dist-"));

function filesOf(folder) {
  return new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [relative(folder, path), readFileSync(path)]),
  );
}

try {
  await build({ root, logLevel: "error", build: { outDir: fresh, emptyOutDir: true } });
  const adminFile = join(root, "vite.admin.config.ts");
  await build({ root, configFile: adminFile, logLevel: "error", build: { outDir: fresh, emptyOutDir: false } });
  const configFile = join(root, "vite.client.config.ts");
  await build({ root, configFile, logLevel: "error", build: { outDir: join(fresh, "client"), emptyOutDir: true } });
  const [built, committed] = [filesOf(fresh), filesOf(join(root, "dist"))];
  const names = [...new Set([...built.keys(), ...committed.keys()])].sort();
  const differ = names.filter((name) => !built.get(name) || !committed.get(name)?.equals(built.get(name)));
  if (differ.length > 0) {
    console.error(`web/dist is not what the sources make: ${differ.join(", ")}\nRun: npm run build, and commit dist.`);
    process.exitCode = 1;
  } else {
    console.log(`web/dist is what the sources make (${names.length} files).`);
  }
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
