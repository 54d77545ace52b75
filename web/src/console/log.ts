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
  private asked = 0; // how often what is new was asked for
  private busy = false; // older ones are under way

  constructor(
    private readonly api: Pick<Api, "log">,
    private readonly sale: string,
  ) {}

  /** Reads what is new. What was read before stays, and only the answer to the newest question counts. */
  async refresh(): Promise<void> {
    this.asked++;
    const asked = this.asked;
    try {
      const { entries, next } = await this.api.log(this.sale, 0, PAGE);
      if (asked !== this.asked) return;
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
      if (asked === this.asked) this.problem.value = problemOf(error);
    }
  }

  async older(): Promise<void> {
    if (this.next === 0 || this.busy) return;
    this.busy = true;
    const from = this.next;
    try {
      const { entries, next } = await this.api.log(this.sale, from, PAGE);
      if (from !== this.next) return; // it was begun anew meanwhile, so these do not follow what is known now
      const known = this.entries.value ?? [];
      this.entries.value = [...known, ...entries.filter(({ id }) => !known.some((entry) => entry.id === id))];
      this.next = next;
      this.more.value = next > 0;
    } catch (error) {
      this.problem.value = problemOf(error);
    } finally {
      this.busy = false;
    }
  }
}
