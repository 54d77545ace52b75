import { render } from "preact";
import { Attention } from "./attention.ts";
import { choose } from "./choose.ts";
import { Clock } from "./clock.ts";
import { Store, tokenFromAddress } from "./identity.ts";
import { language, speak, tags } from "./lang/index.ts";
import { Session } from "./session.ts";
import "./style.css";
import { online, tick } from "./ticker.ts";
import { Frame, NotFound } from "./views/frame.tsx";
import { SaleList } from "./views/list.tsx";
import { SalePage } from "./views/sale.tsx";

const LANGUAGE = "sluice:lang";
const TRIES = "sluice:tries"; // how often the page was loaded in a row without getting its language
const sale = /^\/s\/([a-z0-9][a-z0-9-]{0,62})\/?$/.exec(location.pathname)?.[1];
const store = new Store();
tokenFromAddress(store, sale);
const connect = () => {
  online.value = navigator.onLine;
};
connect();
addEventListener("online", connect);
addEventListener("offline", connect);

/** Shows the page in a language. One that cannot be fetched leaves it as it is. */
async function setLanguage(tag: string): Promise<void> {
  language.value = await speak(tag);
  document.documentElement.lang = tag;
  document.documentElement.dir = language.value.t.dir;
}

function page() {
  if (sale) {
    const session = new Session(sale, store);
    tick(session.clock);
    void session.start();
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") session.recheck();
    });
    addEventListener("pageshow", (event) => {
      if (event.persisted) session.recheck();
    });
    addEventListener("online", () => session.recheck());
    return <SalePage id={sale} session={session} attention={new Attention(store)} />;
  }
  if (location.pathname === "/") {
    const clock = new Clock();
    tick(clock);
    return <SaleList clock={clock} />;
  }
  return <NotFound />;
}

function choice(tag: string): void {
  store.write(LANGUAGE, tag);
  setLanguage(tag).catch(() => {}); // the shopper sees that nothing has changed
}

/** Fetches the first language. One that does not come leaves nothing to show: the page is loaded again, in its own time. */
async function firstLanguage(): Promise<boolean> {
  try {
    await setLanguage(choose([store.read<string>(LANGUAGE) ?? "", ...navigator.languages], tags));
    store.write(TRIES, undefined);
    return true;
  } catch {
    // The network broke off, or a new build has taken the place of this one.
    const tries = store.read<number>(TRIES) ?? 0;
    store.write(TRIES, tries + 1);
    setTimeout(() => location.reload(), Math.min(60_000, 2_000 * 2 ** tries) * (0.5 + Math.random()));
    return false;
  }
}

if (await firstLanguage()) {
  const element = page();
  const root = document.getElementById("page") as HTMLElement;
  // A new language is a new page: no view has to know that the words have changed.
  const draw = () =>
    render(
      <Frame key={language.value.tag} setLanguage={choice}>
        {element}
      </Frame>,
      root,
    );
  language.subscribe(draw);
  root.textContent = "";
  root.removeAttribute("aria-busy");
  draw();
}
