// @vitest-environment node
import { createServer } from "vite";
import { expect, test } from "vitest";

test("the development server answers below /admin with the operator's console", { timeout: 30_000 }, async () => {
  const vite = await createServer({ server: { port: 0, host: "127.0.0.1", watch: null, ws: false } });
  try {
    await vite.listen();
    const [url = ""] = vite.resolvedUrls?.local ?? [];
    const main = async (path: string) => /src="\.?(\/src\/[^"]+)"/.exec(await (await fetch(url + path)).text())?.[1];
    for (const path of ["admin", "admin/", "admin?x", "admin/s/phone-x"]) {
      expect(await main(path), path).toBe("/src/console/main.tsx");
    }
    for (const path of ["", "s/phone-x", "administrator"]) expect(await main(path), path).toBe("/src/main.tsx");
  } finally {
    await vite.close();
  }
});
