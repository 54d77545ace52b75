import { render } from "preact";
import { Clock } from "./clock.ts";
import { Store, tokenFromAddress } from "./identity.ts";
import { choose, language, speak } from "./lang/index.ts";
import { Session } from "./session.ts";
import "./style.css";
import { online, tick } from "./ticker.ts";
import { Frame, NotFound } from "./views/frame.tsx";
import { SaleList } from "./views/list.tsx";
import { SalePage } from "./views/sale.tsx";

const store = new Store();
tokenFromAddress(store);
language.value = speak(choose([store.read<string>("sluice:lang") ?? "", ...navigator.languages]));
language.subscribe(({ tag, t }) => {
  document.documentElement.lang = tag;
  document.documentElement.dir = t.dir;
});

function setLanguage(tag: string): void {
  store.write("sluice:lang", tag);
  language.value = speak(tag);
}

online.value = navigator.onLine;
addEventListener("online", () => {
  online.value = true;
});
addEventListener("offline", () => {
  online.value = false;
});

function page() {
  const sale = /^\/s\/([a-z0-9][a-z0-9-]{0,62})\/?$/.exec(location.pathname)?.[1];
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
    return <SalePage id={sale} session={session} />;
  }
  if (location.pathname === "/") {
    const clock = new Clock();
    tick(clock);
    return <SaleList clock={clock} />;
  }
  return <NotFound />;
}

render(<Frame setLanguage={setLanguage}>{page()}</Frame>, document.getElementById("page") as HTMLElement);
