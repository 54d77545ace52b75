import { useCell } from "../cell.ts";
import type { Outcome } from "../draw.ts";
import { language } from "../lang/index.ts";
import type { View } from "../state.ts";
import { now } from "../ticker.ts";
import { Commitment, DrawCheck } from "./draw.tsx";
import { Bar, Countdown, Fact } from "./parts.tsx";
import { etaWords } from "./words.ts";

export function ScheduledView({ view }: { view: View & { name: "scheduled" } }) {
  const { t, f } = language.value;
  const time = useCell(now);
  return (
    <section class="card">
      <h1>{t.scheduled}</h1>
      <p class="label">{t.joinsIn}</p>
      <p class="big">{view.joinsAt > time ? <Countdown until={view.joinsAt} /> : t.connecting}</p>
      <p class="more">{t.scheduledMore(f.moment(view.joinsAt, time))}</p>
      <p class="more">{t.opens(f.moment(view.opensAt, time))}</p>
    </section>
  );
}

export function LobbyView({
  view,
  number,
  commitment,
  ranked,
}: {
  view: View & { name: "lobby" };
  number: number | undefined;
  commitment: string | undefined;
  ranked: boolean | undefined;
}) {
  const { t, f } = language.value;
  const time = useCell(now);
  const direct = view.order === "off";
  return (
    <section class="card">
      <h1>{direct ? t.lobbyOff : t.lobby}</h1>
      <p class="label">{t.opensIn}</p>
      <p class="big">
        {view.opens_at > time ? <Countdown until={view.opens_at} /> : view.drawing ? t.drawing : t.opening}
      </p>
      {!direct && (
        <p class="label">
          {t.lobbyEntries(view.entries, f.number(view.entries))}
          {view.order === "fifo" && number !== undefined && ` · ${t.yourNumber} ${f.number(number)}`}
        </p>
      )}
      <p class="more">{direct ? t.lobbyDirect : view.order === "lottery" ? t.lobbyLottery : t.lobbyFifo}</p>
      {ranked && <p class="more">{t.lobbyRanked}</p>}
      {commitment && <Commitment commitment={commitment} />}
    </section>
  );
}

/**
 * The bar shows the part of those before this seat that is done: it needs no memory, so that a reload does not move it,
 * and as `ahead` never rises it never goes back.
 */
function progress(number: number, ahead: number): number {
  return number <= 1 ? 1 : 1 - ahead / (number - 1);
}

export function QueuedView({
  view,
  jump,
  paused,
  grace,
  check,
}: {
  view: View & { name: "queued" };
  jump: string | undefined; // why the place or the time to wait has jumped lately
  paused: boolean;
  grace: number | undefined; // how long the seat is kept while nobody is here, ms
  check: (() => Promise<Outcome>) | undefined; // repeats the draw, where there was one
}) {
  const { t, f } = language.value;
  const next = view.ahead === 0;
  return (
    <section class="card">
      <h1>{t.queued}</h1>
      <p class={next ? "big words" : "big"}>
        {next ? (
          t.next
        ) : (
          <>
            <span class="digits">{f.number(view.ahead)}</span> <small>{t.ahead}</small>
          </>
        )}
      </p>
      <div class={paused ? "still" : "moving"}>
        <Bar value={progress(view.number, view.ahead)} label={t.queued} />
      </div>
      {view.recalled > 0 && <p class="label">{t.recalled(view.recalled, f.number(view.recalled))}</p>}
      {jump && t.jumped[jump] && <p class="label">{t.jumped[jump]}</p>}
      <dl class="facts">
        <Fact name={t.eta}>{paused ? t.etaUnknown : etaWords(view, language.value)}</Fact>
        <Fact name={t.yourNumber}>{f.number(view.number)}</Fact>
        <Fact name={t.total}>{f.number(view.total)}</Fact>
        <Fact name={t.stock}>
          <span class={`chip ${view.stock}`}>{t.stockState[view.stock]}</span>
        </Fact>
      </dl>
      {view.stock === "available" ? (
        <p class="more">
          <strong>{t.chance(t.chanceWord[view.chance])}</strong> {t.chanceMore[view.chance]}
        </p>
      ) : (
        <p class="more">{view.stock === "held" ? t.heldMore : t.goneMore}</p>
      )}
      {grace !== undefined && <p class="more">{t.keepOpen(f.length(grace))}</p>}
      {check && <DrawCheck check={check} />}
    </section>
  );
}
