import { render } from "preact";
import "./style/console.css";
import { choose } from "../choose.ts";
import { readLanguage } from "./keep.ts";
import { language, languages, speak } from "./lang/index.ts";
import { followAddress, route } from "./route.ts";
import { Session } from "./session.ts";
import { ArchivedPage } from "./views/archived.tsx";
import { SalePage } from "./views/sale.tsx";
import { SalesPage } from "./views/sales.tsx";
import { NewSalePage } from "./views/settings.tsx";
import { Shell } from "./views/shell.tsx";
import { SignIn } from "./views/sign-in.tsx";

language.value = speak(choose([readLanguage(), ...navigator.languages], Object.keys(languages)));
language.subscribe(({ tag, t }) => {
  document.documentElement.lang = tag;
  document.documentElement.dir = t.dir;
});
followAddress();
const session = new Session();
if (session.token.value) void session.introduce();

function Page() {
  if (!session.token.value) return <SignIn session={session} />;
  const to = route.value;
  if (to.page === "sale") return <SalePage session={session} id={to.sale} part={to.part} />;
  if (to.page === "nowhere") return <h1 class="nowhere">{language.value.t.nowhere}</h1>;
  if (to.part === "archived") return <ArchivedPage session={session} />;
  return to.part === "new" ? <NewSalePage api={session.api} /> : <SalesPage session={session} />;
}

function Console() {
  return (
    <Shell session={session}>
      <Page />
    </Shell>
  );
}

render(<Console />, document.getElementById("page") as HTMLElement);
