import type { Attention } from "../attention.ts";
import { useCell } from "../cell.ts";
import { language } from "../lang/index.ts";
import { isLive } from "../protocol.ts";
import type { Actions, Gate, Session } from "../session.ts";
import type { Notice, State, View } from "../state.ts";
import { now, online } from "../ticker.ts";
import { useTitle } from "../title.ts";
import { CallMe, useCall } from "./call.tsx";
import { Message } from "./frame.tsx";
import { OrderView } from "./order.tsx";
import { Announce, Ask } from "./parts.tsx";
import { Share } from "./share.tsx";
import { Grabbing, TurnView } from "./turn.tsx";
import { LobbyView, QueuedView, ScheduledView } from "./waiting.tsx";
import { etaWords, orderHead } from "./words.ts";

export function SalePage({ id, session, attention }: { id: string; session: Session; attention: Attention }) {
  return (
    <SaleView
      id={id}
      state={useCell(session.state)}
      gate={useCell(session.gate)}
      actions={session}
      attention={attention}
    />
  );
}

/** A sale as one shopper sees it. Everything that it shows is in its arguments, the language and the time. */
export function SaleView(props: { id: string; state: State; gate: Gate; actions: Actions; attention: Attention }) {
  const { t, f } = language.value;
  const { id, state, gate, actions, attention } = props;
  const { view } = state;
  const title = state.sale ? f.text(state.sale.title, id) : "";
  useCall(state, title, attention);
  const inLine = state.sale?.line.order !== "off" && ["lobby", "queued", "turn"].includes(view.name);
  const shown = gate === "open" && !state.pending;
  return (
    <>
      <p class="saleTitle">{title}</p>
      <Banners state={state} />
      <div class="view" {...marks(state, gate)}>
        {gate === "open" ? <Body state={state} actions={actions} /> : <GateView gate={gate} />}
      </div>
      {shown && inLine && view.name !== "turn" && <CallMe attention={attention} />}
      {shown && (inLine || (view.name === "order" && isLive(view.order))) && (
        <div class="row links">
          <Share link={() => actions.link()} />
          {inLine && (
            <Ask
              id="leave"
              label={t.leave}
              title={t.leaveAsk}
              more={t.leaveAskMore}
              yes={t.leaveYes}
              no={t.leaveNo}
              run={() => actions.leave()}
            />
          )}
        </div>
      )}
      <Spoken id={id} state={state} title={title} gate={gate} />
    </>
  );
}

/** What the page is at, for scripts that drive it: they must not depend on the words of a language. */
function marks({ view, pending, number }: State, gate: Gate) {
  return {
    "data-view": gate !== "open" ? gate : pending ? "grabbing" : view.name,
    "data-number": number,
    "data-ahead": view.name === "queued" ? view.ahead : undefined,
    "data-order": view.name === "order" ? view.order.id : undefined,
    "data-status": view.name === "order" ? view.order.status : undefined,
  };
}

function Body({ state, actions }: { state: State; actions: Actions }) {
  const { t } = language.value;
  const { view, sale } = state;
  if (state.pending) return <Grabbing />;
  switch (view.name) {
    case "connecting": {
      const more = state.notice ? t.crowdedMore : state.link === "waiting" ? t.unreachedMore : t.connectingMore;
      return <Message title={t.connecting} more={more} tone="busy" />;
    }
    case "scheduled":
      return <ScheduledView view={view} />;
    case "lobby":
      return (
        <LobbyView
          view={view}
          number={state.number}
          commitment={sale?.line.commitment}
          ranked={sale?.access?.priority}
        />
      );
    case "queued":
      return (
        <QueuedView
          view={view}
          jump={state.jump?.why}
          paused={state.pause !== undefined}
          grace={sale?.line.grace}
          check={sale?.line.order === "lottery" ? () => actions.checkDraw() : undefined}
        />
      );
    case "turn":
      return <TurnView state={state} view={view} actions={actions} />;
    case "order":
      return <OrderView view={view} state={state} actions={actions} />;
    case "soldOut":
      return view.stock === "gone" ? (
        <Message title={t.gone} more={t.goneMore} />
      ) : (
        <Message title={t.held} more={t.heldView} tone="busy" />
      );
    case "missed": {
      const absent = view.why === "absent";
      return (
        <Message title={absent ? t.absent : t.missed} more={absent ? t.absentMore : t.missedMore}>
          <Join label={t.rejoin} actions={actions} />
        </Message>
      );
    }
    case "paused":
      return <Message {...pauseWords(state.pause)} tone="busy" />;
    case "closed":
      return <Message title={t.closed} more={t.closedMore} />;
    case "none":
      return (
        <Message title={t.none} more={t.noneMore}>
          <Join label={t.join} actions={actions} />
        </Message>
      );
    case "left":
      return (
        <Message title={t.left} more={t.leftMore}>
          <Join label={t.join} actions={actions} />
        </Message>
      );
    case "refused":
      return <Refused view={view} actions={actions} />;
  }
}

function Join({ label, actions }: { label: string; actions: Actions }) {
  return (
    <button type="button" class="button" onClick={() => actions.join()}>
      {label}
    </button>
  );
}

function GateView({ gate }: { gate: Gate }) {
  const { t } = language.value;
  if (gate === "signIn") return <Message title={t.signIn} more={t.signInMore} />;
  return <Message title={t.connecting} more={t.crowdedMore} tone="busy" />;
}

/** The connection was refused for good. Where the shopper can do something about it, that stands beside the reason. */
function Refused({ view, actions }: { view: View & { name: "refused" }; actions: Actions }) {
  const { t } = language.value;
  const { code, reason } = view;
  if (code === 4404) {
    return (
      <Message title={t.notFound} more={t.refusedWhy[4404] ?? ""}>
        <a class="button" href="/">
          {t.allSales}
        </a>
      </Message>
    );
  }
  if (reason === "code_needed" || reason === "code_used") {
    return (
      <Message title={t.codeNeeded} more={t.refusedWhy[reason] ?? ""}>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            actions.join(String(new FormData(event.currentTarget).get("code")));
          }}
        >
          <label class="field">
            <span>{t.codeLabel}</span>
            <input name="code" required autocomplete="off" autocapitalize="off" spellcheck={false} />
          </label>
          <button type="submit" class="button">
            {t.codeSend}
          </button>
        </form>
      </Message>
    );
  }
  return (
    <Message title={t.refused} more={t.refusedWhy[reason] ?? t.refusedWhy[code] ?? t.failed}>
      {code === 4401 && (
        <button type="button" class="button" onClick={() => actions.restart()}>
          {t.restart}
        </button>
      )}
      {(code === 4400 || code === 4409) && (
        <button type="button" class="button" onClick={() => window.location.reload()}>
          {t.reload}
        </button>
      )}
    </Message>
  );
}

/** What stands beside the state: the connection, a pause, a word about the last thing that was tried. */
function Banners({ state }: { state: State }) {
  const { t } = language.value;
  const connected = useCell(online);
  const known = state.view.name !== "connecting";
  const away = known && (state.link === "waiting" || state.link === "connecting");
  return (
    <>
      {away && (
        <p class="banner link" role="status">
          {connected ? t.reconnecting : t.offline}
        </p>
      )}
      {state.pause && state.view.name !== "paused" && state.view.name !== "closed" && (
        <p class="banner" role="status">
          <strong>{pauseWords(state.pause).title}</strong> {pauseWords(state.pause).more}
        </p>
      )}
      {state.notice && known && (
        <p class="banner alert" role="alert">
          {noticeWords(state.notice, state)}
        </p>
      )}
    </>
  );
}

function pauseWords(why: string | undefined) {
  const { t } = language.value;
  return why === "recovering"
    ? { title: t.recovering, more: t.recoveringMore }
    : { title: t.paused, more: t.pausedMore };
}

function noticeWords(notice: Notice, state: State): string {
  const { t, f } = language.value;
  switch (notice.kind) {
    case "limited":
      return t.limited;
    case "busy":
      return t.busy;
    case "noTurn":
      return t.noTurn;
    case "notOpen":
      return t.notOpen;
    case "fewer":
      return t.onlyLeft(notice.left, f.number(notice.left));
    case "itemGone": {
      const item = state.sale?.items.find(({ id }) => id === notice.item);
      const name = f.text(item?.title, notice.item);
      return notice.stock === "held" ? t.itemHeld(name) : t.itemGone(name);
    }
    case "error":
      return t.failed;
    case "unanswered":
      return t.unanswered;
    case "orderEnded":
      return t.earlier(t[notice.status]);
  }
}

/** The state in words: for the window's title, and for those who listen. */
function Spoken({ id, state, title, gate }: { id: string; state: State; title: string; gate: Gate }) {
  const { t, f } = language.value;
  const { view } = state;
  const time = useCell(now);
  let head = headline(state, gate);
  let text = head;
  if (!state.pending && gate === "open") {
    switch (view.name) {
      case "queued":
        text = t.queuedSay(view.ahead, f.number(view.ahead), etaWords(view, language.value));
        if (view.ahead > 0) head = `${f.number(view.ahead)} ${t.ahead}`;
        break;
      case "turn":
        if (state.sale?.line.order === "off") break;
        text = t.turnSay(f.clock(view.until - time));
        head = `${f.clock(view.until - time)} · ${t.turn}`;
        break;
      case "lobby":
        head = `${f.clock(view.opens_at - time)} · ${head}`;
        break;
    }
  }
  useTitle(`${head} · ${title || id}`);
  return (
    <Announce subject={state.pending ? "grab" : `${gate} ${view.name} ${head === text ? head : ""}`} text={text} />
  );
}

function headline(state: State, gate: Gate): string {
  const { t } = language.value;
  const { view } = state;
  if (gate !== "open") return gate === "signIn" ? t.signIn : t.connecting;
  if (state.pending) return t.grabbing;
  switch (view.name) {
    case "connecting":
      return t.connecting;
    case "scheduled":
      return t.scheduled;
    case "lobby":
      return view.order === "off" ? t.lobbyOff : t.lobby;
    case "queued":
      return view.ahead === 0 ? t.next : t.queued;
    case "turn":
      return state.sale?.line.order === "off" ? t.turnOff : t.turn;
    case "order":
      return orderHead(view, t);
    case "soldOut":
      return view.stock === "gone" ? t.gone : t.held;
    case "missed":
      return view.why === "absent" ? t.absent : t.missed;
    case "paused":
      return pauseWords(state.pause).title;
    case "closed":
      return t.closed;
    case "none":
      return t.none;
    case "left":
      return t.left;
    case "refused":
      return view.code === 4404 ? t.notFound : t.refused;
  }
}
