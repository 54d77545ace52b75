import type { ComponentChildren } from "preact";
import { writeLanguage } from "../keep.ts";
import { language, languages, speak } from "../lang/index.ts";
import { zone } from "../local-time.ts";
import type { Session } from "../session.ts";

function setLanguage(tag: string): void {
  writeLanguage(tag);
  language.value = speak(tag);
}

/** What stands around every page of the console. */
export function Shell({ session, children }: { session: Session; children: ComponentChildren }) {
  const { t, tag } = language.value;
  const about = session.about.value;
  return (
    <>
      <a class="skip" href="#main">
        {t.skip}
      </a>
      <header class="top">
        <a class="home" href="/admin">
          <svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
            <path d="M4 5h16M6.5 10h11M9 15h6M11 20h2" />
          </svg>
          <span>{t.console}</span>
        </a>
        <label class="lang">
          <span class="sr">{t.language}</span>
          <select value={tag} onChange={(event) => setLanguage(event.currentTarget.value)}>
            {Object.entries(languages).map(([tag, { name }]) => (
              <option key={tag} value={tag} lang={tag}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {session.token.value && (
          <button type="button" class="quiet" onClick={() => session.signOut()}>
            {t.signOut}
          </button>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <footer class="foot">
        <span>{t.zone(zone())}</span>
        {about && <span>{t.answeredBy(about.node, about.version)}</span>}
        {about?.payment === "demo" && <span>{t.demoPayment}</span>}
      </footer>
    </>
  );
}
