import { type Api, type Problem, problemOf } from "./api.ts";
import { validId } from "./form.ts";
import type { SaleFile } from "./types.ts";

/** What is known of a sale file that is being written. */
export type Verdict =
  | { kind: "unchanged" | "checking" | "sound" | "id" | "taken" }
  | { kind: "problem"; problem: Problem };

/** Typing has to rest for so long before the server is asked. */
const REST_MS = 400;
/** A server that was not there is asked again after so long. */
const AGAIN_MS = 3_000;

/**
 * Has the server check a file while it is being written. Only the answer to the newest file counts. taken are the ids that
 * a new sale may not have: its file would silently change the sale that has it. While they are not known, nothing is sound.
 */
export class Checker {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asking: AbortController | undefined;

  constructor(
    private readonly api: Pick<Api, "put">,
    private readonly tell: (verdict: Verdict) => void,
  ) {}

  check(file: SaleFile, unchanged: boolean, taken: ReadonlySet<string> | undefined): void {
    this.stop();
    const kind = unchanged ? "unchanged" : !validId(file.id) ? "id" : taken?.has(file.id) ? "taken" : "checking";
    this.tell({ kind });
    if (kind === "checking" && taken) this.timer = setTimeout(() => void this.ask(file), REST_MS);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.asking = undefined;
  }

  private async ask(file: SaleFile): Promise<void> {
    const asking = new AbortController();
    this.asking = asking;
    let verdict: Verdict;
    try {
      await this.api.put(file, true, asking.signal);
      verdict = { kind: "sound" };
    } catch (error) {
      verdict = { kind: "problem", problem: problemOf(error) };
    }
    if (asking.signal.aborted) return;
    this.tell(verdict);
    // That says nothing about the file, and nobody has to type only to have it checked.
    if (verdict.kind === "problem" && [0, 503].includes(verdict.problem.status)) {
      this.timer = setTimeout(() => void this.ask(file), AGAIN_MS);
    }
  }
}
