import { Backoff } from "./backoff.ts";
import { Cell } from "./cell.ts";
import { Clock } from "./clock.ts";
import type { Outcome } from "./draw.ts";
import { askGuest, codeIn, forget, held, type Identity, memoryOf, type Store } from "./identity.ts";
import { Sluice } from "./sluice.ts";
import { initial, type State } from "./state.ts";
import { now } from "./ticker.ts";

/** What stands between the shopper and the line before there is an identity. */
export type Gate = "open" | "crowded" | "signIn";

/** What a shopper can do on a sale's page. */
export interface Actions {
  grab(item: string, qty: number): void;
  leave(): void;
  join(code?: string): void;
  restart(): void;
  pay(): void;
  cancel(): void;
  /** The address that goes on with this place on another device; it carries the shopper's identity. */
  link(): string;
  checkDraw(): Promise<Outcome>;
}

/** One sale's page: finds out who the shopper is, then keeps them connected. */
export class Session implements Actions {
  readonly state = new Cell<State>(initial);
  readonly gate = new Cell<Gate>("open");
  readonly clock = new Clock();
  readonly #noted: string; // where the commitment of a lottery is kept, as it was in the lobby
  #client: Sluice | undefined;
  #renewed = false;

  readonly #sale: string;
  readonly #store: Store;

  constructor(sale: string, store: Store) {
    this.#sale = sale;
    this.#store = store;
    this.#noted = `sluice:draw:${sale}`;
  }

  async start(): Promise<void> {
    const identity = held(this.#store, this.#sale) ?? (await this.#guest());
    if (identity) this.#connect(identity);
  }

  grab(item: string, qty: number): void {
    this.#client?.grab(item, qty);
  }

  leave(): void {
    this.#client?.leave();
  }

  join(code?: string): void {
    this.#client?.join(code);
  }

  pay(): void {
    void this.#client?.pay();
  }

  cancel(): void {
    void this.#client?.cancel();
  }

  link(): string {
    return `${location.origin}/s/${this.#sale}#place=${held(this.#store, this.#sale)?.token ?? ""}`;
  }

  /** Begins as somebody new, after a sign-in that is not valid any more. */
  restart(): void {
    this.#client?.stop();
    forget(this.#store, this.#sale);
    this.state.value = initial;
    void this.start();
  }

  /** Repeats the draw of a lottery. The code for it is fetched only when somebody asks. */
  async checkDraw(): Promise<Outcome> {
    const { fetchAndCheck } = await import("./draw.ts");
    return fetchAndCheck(this.#sale, held(this.#store, this.#sale)?.token ?? "", this.#store.read<string>(this.#noted));
  }

  recheck(): void {
    this.#client?.recheck();
  }

  #connect(identity: Identity): void {
    this.#client = new Sluice({
      url: `${location.origin.replace(/^http/, "ws")}/ws/v1/sales/${this.#sale}`,
      token: identity.token,
      code: this.#store.read<string>(codeIn(this.#sale)),
      ...memoryOf(this.#store, this.#sale, identity.token),
      clock: this.clock,
      onState: (state) => {
        // A guest whose token is void (other keys, too old) has nothing to lose by being a new one. Once, not in a loop.
        if (state.view.name === "refused" && state.view.code === 4401 && identity.guest && !this.#renewed) {
          this.#renewed = true;
          this.restart();
          return;
        }
        const commitment = state.sale?.line.commitment;
        if (commitment && state.view.name === "lobby" && this.#store.read(this.#noted) === undefined) {
          this.#store.write(this.#noted, commitment); // so that the operator is bound to what was shown before the draw
        }
        now.value = this.clock.now(); // the clocks that come with the new state start right
        this.state.value = state;
      },
    });
    this.#client.start();
  }

  async #guest(): Promise<Identity | undefined> {
    const backoff = new Backoff();
    for (;;) {
      const answer = await askGuest(this.#store, this.#sale);
      if (answer.kind === "guest") {
        this.gate.value = "open";
        return answer.identity;
      }
      if (answer.kind === "refused") {
        this.gate.value = "signIn";
        return undefined;
      }
      this.gate.value = "crowded";
      const wait = Math.max(answer.after ?? 0, backoff.next());
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}
