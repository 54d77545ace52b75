import { encode as matrix } from "uqr";

/** A code that a phone's camera reads, as the path of a drawing in which a module is 1 wide. */
export interface Code {
  size: number; // modules a side, the quiet border included
  path: string;
}

const BORDER = 4; // of modules, as ISO/IEC 18004 asks for

/** Encodes an address. Fails when it is too long for a code. */
export function encode(text: string): Code {
  const { data, size } = matrix(text, { ecc: "L", border: BORDER });
  let path = "";
  data.forEach((row, y) => {
    let from = -1;
    for (let x = 0; x <= size; x++) {
      if (row[x] && from < 0) from = x;
      if (!row[x] && from >= 0) {
        path += `M${from} ${y}h${x - from}v1h${from - x}z`;
        from = -1;
      }
    }
  });
  return { size, path };
}
