import type { About, LogEntry, Move, OrderRow, Sale, SaleFile } from "./types.ts";

const BASE = "/api/v1/admin";
const PATIENCE_MS = 10_000; // an answer that takes longer than this is not waited for, or requests would pile up
const CHANGE_MS = 70_000; // a change takes the server a minute at most, the rebuilding of a sale from its orders included

/** Why a request was not done, in the server's own words where it answered. */
export class Problem extends Error {
  constructor(
    readonly status: number, // 0 = no answer
    readonly code: string,
    readonly detail: string, // in English
    readonly title = "", // in the language that was asked for
  ) {
    super(detail || title || code);
  }
}

export interface LineChange {
  rate?: number;
  active?: number;
  ratio?: number;
}

export interface OrderQuery {
  q: string;
  status: string;
  before: string;
  limit: number;
}

export interface Options {
  token: () => string;
  language: () => string;
  /** The token is not accepted, or not any more. */
  onRefused: () => void;
  fetch?: typeof fetch;
}

/** The operator's API. The token goes in a header, never in an address. Every failure is a Problem. */
export class Api {
  constructor(private readonly options: Options) {}

  about = () => this.json<About>("/about");
  sales = () => this.json<{ sales: Sale[]; incomplete?: string }>("/sales");
  archived = async () => (await this.json<{ sales: Sale[] }>("/sales?archived=true")).sales;
  sale = (id: string) => this.json<Sale>(`/sales/${id}`);
  move = (id: string, move: Move) => this.json<Sale>(`/sales/${id}/${move}`, { method: "POST" });
  line = (id: string, change: LineChange) => this.json<Sale>(`/sales/${id}/line`, body("PATCH", change));
  extend = (id: string, closes_at: string) => this.json<Sale>(`/sales/${id}/extend`, body("POST", { closes_at }));
  stock = (id: string, item: string, total: number) =>
    this.json<Sale>(`/sales/${id}/stock`, body("POST", { item, total }));

  /** Saves a sale file, or with dryRun only has it checked. */
  put(file: SaleFile, dryRun: boolean, signal?: AbortSignal): Promise<Sale> {
    const query = dryRun ? "?dry_run=true" : "";
    const init = { ...body("PUT", file), ...(signal && { signal }) };
    return this.json<Sale>(`/sales/${file.id}${query}`, init, dryRun ? PATIENCE_MS : CHANGE_MS);
  }

  orders(id: string, query: OrderQuery, signal?: AbortSignal): Promise<{ orders: OrderRow[]; next: string }> {
    const fields = Object.entries(query).filter(([, value]) => value !== "");
    const search = new URLSearchParams(fields.map(([name, value]) => [name, String(value)]));
    return this.json(`/sales/${id}/orders?${search}`, signal ? { signal } : {});
  }

  log(id: string, before: number, limit: number): Promise<{ entries: LogEntry[]; next: number }> {
    const search = new URLSearchParams({ sale: id, limit: String(limit) });
    if (before) search.set("before", String(before));
    return this.json(`/audit-log?${search}`);
  }

  csv = async (id: string) => (await this.open(`/sales/${id}/orders.csv`)).blob();
  live = (id: string, signal: AbortSignal) => this.open(`/sales/${id}/live`, { signal });

  private async json<T>(
    path: string,
    init?: RequestInit,
    patience = init?.method ? CHANGE_MS : PATIENCE_MS,
  ): Promise<T> {
    const late = AbortSignal.timeout(patience);
    const signal = init?.signal ? AbortSignal.any([init.signal, late]) : late;
    let status = 0;
    try {
      const response = await this.open(path, { ...init, signal });
      status = response.status;
      return (await response.json()) as T;
    } catch (error) {
      if (late.aborted && !init?.signal?.aborted) throw new Problem(0, "unreached", "");
      throw status === 0 || init?.signal?.aborted ? error : new Problem(status, "unreadable", "");
    }
  }

  private async open(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("Authorization", `Bearer ${this.options.token()}`);
    headers.set("Accept-Language", this.options.language());
    let response: Response;
    try {
      const ask = this.options.fetch ?? fetch;
      response = await ask(BASE + path, { cache: "no-store", credentials: "omit", ...init, headers });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new Problem(0, "unreached", "");
    }
    if (response.ok) return response;
    const problem = await readProblem(response);
    if (problem.status === 401) this.options.onRefused();
    throw problem;
  }
}

function body(method: string, value: unknown): RequestInit {
  return { method, body: JSON.stringify(value), headers: { "Content-Type": "application/json" } };
}

/** The problem in an answer. What stands before the server, a proxy for one, may answer in another form. */
export async function readProblem(response: Response): Promise<Problem> {
  const type = response.headers.get("Content-Type") ?? "";
  if (/json/.test(type)) {
    try {
      const { code, detail, title } = (await response.json()) as Record<string, unknown>;
      return new Problem(response.status, String(code ?? ""), String(detail ?? ""), String(title ?? ""));
    } catch {
      // no problem document after all
    }
  }
  return new Problem(response.status, "", "");
}

/** Any failure as a problem. */
export function problemOf(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, "unreached", "");
}
