import { signal } from "@preact/signals";
import { Api, type Options, type Problem, problemOf } from "./api.ts";
import { readToken, writeToken } from "./keep.ts";
import { language } from "./lang/index.ts";
import type { About } from "./types.ts";

/** Why one is not signed in, where there is something to say. */
export type Refusal = { kind: "wrong" | "refused" | "out" } | { kind: "problem"; problem: Problem };

/** Who asks: the admin token, and what the server says of itself to whoever has it. */
export class Session {
  readonly token = signal(readToken());
  readonly refusal = signal<Refusal>();
  readonly about = signal<About>();
  readonly api: Api;
  private trying = "";

  constructor(ask?: Options["fetch"]) {
    this.api = new Api({
      token: () => this.trying || this.token.value,
      language: () => language.value.tag,
      onRefused: () => {
        if (this.token.value) this.leave({ kind: "refused" });
      },
      ...(ask && { fetch: ask }),
    });
  }

  /** Takes a token when the server does. */
  async signIn(token: string): Promise<void> {
    this.refusal.value = undefined;
    // Nothing else fits into a header, so it is no token of any server.
    if (!/^[\x21-\x7e]+$/.test(token)) {
      this.refusal.value = { kind: "wrong" };
      return;
    }
    this.trying = token;
    try {
      this.about.value = await this.api.about();
      writeToken(token);
      this.token.value = token;
    } catch (error) {
      this.refusal.value = refusalOf(error);
    } finally {
      this.trying = "";
    }
  }

  /** Reads what the server says of itself. Without an answer the console does without. */
  async introduce(): Promise<void> {
    const token = this.token.value;
    try {
      const about = await this.api.about();
      if (token === this.token.value) this.about.value = about;
    } catch {
      // a refused token has led to the sign-in already, and everything else is told where it matters
    }
  }

  signOut(): void {
    this.leave({ kind: "out" });
  }

  private leave(why: Refusal): void {
    writeToken("");
    this.token.value = "";
    this.about.value = undefined;
    this.refusal.value = why;
  }
}

function refusalOf(error: unknown): Refusal {
  const problem = problemOf(error);
  return problem.status === 401 ? { kind: "wrong" } : { kind: "problem", problem };
}
