import { signal } from "@preact/signals";
import { type Api, type Problem, problemOf } from "./api.ts";
import type { LogEntry } from "./types.ts";

const PAGE = 10;

/** The log of changes of one sale, newest first, as far back as was asked for. */
export class ChangeLog {
  readonly entries = signal<LogEntry[]>();
  readonly more = signal(false);
  readonly problem = signal<Problem>();
  private next = 0;

  constructor(
    private readonly api: Pick<Api, "log">,
    private readonly sale: string,
  ) {}

  /** Reads what is new. What was read before stays. */
  async refresh(): Promise<void> {
    try {
      const { entries, next } = await this.api.log(this.sale, 0, PAGE);
      const known = this.entries.value ?? [];
      const oldest = entries.at(-1)?.id ?? 0;
      const older = known.filter(({ id }) => id < oldest);
      // A page that has nothing in common with what is known leaves a hole, so what is behind it is forgotten.
      const joined = older.length === 0 || known.some(({ id }) => id >= oldest);
      this.entries.value = joined ? [...entries, ...older] : entries;
      if (!joined || older.length === 0) this.next = next;
      this.more.value = this.next > 0;
      this.problem.value = undefined;
    } catch (error) {
      this.problem.value = problemOf(error);
    }
  }

  async older(): Promise<void> {
    if (this.next === 0) return;
    try {
      const { entries, next } = await this.api.log(this.sale, this.next, PAGE);
      this.entries.value = [...(this.entries.value ?? []), ...entries];
      this.next = next;
      this.more.value = next > 0;
    } catch (error) {
      this.problem.value = problemOf(error);
    }
  }
}
