import { connect, createServer } from "node:net";
import { atEnd } from "./journey.mjs";

/** Lays a cable to a server that can be cut, and mended: then nothing gets through, and what was open is gone. */
export async function lay(url) {
  const { hostname, port } = new URL(url);
  const ends = new Set();
  let whole = true;
  const server = createServer((near) => {
    if (!whole) return near.destroy();
    const far = connect(Number(port), hostname);
    for (const [end, other] of [
      [near, far],
      [far, near],
    ]) {
      ends.add(end);
      end.on("error", () => {});
      end.on("close", () => {
        ends.delete(end);
        other.destroy();
      });
      end.pipe(other);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => {
    whole = false;
    for (const end of ends) end.destroy();
  };
  atEnd.stops.push(() => {
    cut();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut,
    mend: () => {
      whole = true;
    },
  };
}
