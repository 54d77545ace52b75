import type { ComponentChildren } from "preact";
import { language } from "../lang/index.ts";
import { type Live, STALE_MS } from "../live.ts";
import type { SalePart } from "../route.ts";
import type { Sale } from "../types.ts";
import { Announce, Chips, Countdown, ProblemText } from "./parts.tsx";

/** What stands above every part of a sale: its name and state, its clock, the way to the parts, the connection. */
export function SaleHead(props: {
  id: string;
  name: string;
  sale: Sale | undefined;
  part: SalePart;
  live: Live;
  children?: ComponentChildren;
}) {
  const { t } = language.value;
  const { id, name, sale, part, live } = props;
  const parts: [SalePart, string][] = [
    ["live", t.live],
    ["orders", t.orders],
    ["settings", t.settings],
  ];
  if (sale?.archived) parts.splice(0, 3, ["live", t.archive.title], ["orders", t.orders]);
  return (
    <>
      <div class="sale-head">
        <div class="sale-name">
          <p class="trail">
            <a href="/admin">
              <span aria-hidden="true" class="arrow" /> {t.allSales}
            </a>
            <code>{id}</code>
            <a href={`/s/${id}`}>{t.shopperPage}</a>
          </p>
          <div class="sale-title">
            <h1>{name}</h1>
            {sale && <Chips sale={sale} />}
            {sale?.archived ? <span class="chip closed">{t.archive.title}</span> : <Freshness live={live} />}
          </div>
        </div>
        {sale && <SaleClock sale={sale} />}
      </div>
      <div class="sale-bar">
        <nav class="parts" aria-label={name}>
          {parts.map(([name, words]) => (
            <a key={name} href={`#${name}`} {...(part === name && { "aria-current": "page" as const })}>
              {words}
            </a>
          ))}
        </nav>
        {props.children}
      </div>
      <StaleBanner live={live} />
    </>
  );
}

function SaleClock({ sale }: { sale: Sale }) {
  const { t, f } = language.value;
  const before = sale.state === "scheduled" || sale.state === "lobby";
  const [opens, closes] = [Date.parse(sale.opens_at), Date.parse(sale.closes_at)];
  return (
    <dl class="sale-clock">
      <dt>{before ? t.opensIn : sale.state === "closed" ? t.closedAt : t.closesIn}</dt>
      <dd>{sale.state === "closed" ? f.when(closes) : <Countdown until={before ? opens : closes} />}</dd>
      {sale.state !== "closed" && <dd class="soft">{f.when(before ? opens : closes)}</dd>}
    </dl>
  );
}

/** A dot that says at a glance whether the figures are of now. */
function Freshness({ live }: { live: Live }) {
  const { t, f } = language.value;
  const frame = live.frame.value;
  const old = live.stale.value;
  if (!frame) return null;
  return (
    <span class={old ? "fresh old" : "fresh"}>
      <span class="dot" aria-hidden="true" />
      {old ? f.span(live.quiet.value) : t.fresh}
      <span class="soft digits">{f.time(frame.at)}</span>
    </span>
  );
}

/** Says that the figures are old, how old, and what is done about it. Only that it is so is read out, not every second. */
function StaleBanner({ live }: { live: Live }) {
  const { t, f } = language.value;
  const old = live.stale.value;
  const link = live.link.value;
  const waiting = link === "waiting";
  const problem = live.problem.value;
  const frame = live.frame.value;
  return (
    <>
      {old && link !== "ended" && (
        <p class="banner warn stale-banner">
          <strong>{t.stale(f.span(live.quiet.value))}</strong> {frame && t.staleMore}{" "}
          {problem && problem.status > 0 && <ProblemText problem={problem} />}{" "}
          {waiting && t.retryIn(f.span(live.retryIn.value))} {link === "connecting" && t.trying}{" "}
          {waiting && (
            <button type="button" class="link" onClick={() => live.retry()}>
              {t.retry}
            </button>
          )}
        </p>
      )}
      {!frame && !old && <p class="soft">{t.connecting}</p>}
      <Announce text={old ? t.stale(f.span(STALE_MS)) : ""} />
    </>
  );
}
