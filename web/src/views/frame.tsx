import type { ComponentChildren } from "preact";
import { language, nameOf, tags } from "../lang/index.ts";
import { useTitle } from "../title.ts";

/** What stands around every page: the way to the content, the way to the list, the language. */
export function Frame({ children, setLanguage }: { children: ComponentChildren; setLanguage: (tag: string) => void }) {
  const { t, tag } = language.value;
  return (
    <>
      <a class="skip" href="#main">
        {t.skip}
      </a>
      <header class="top">
        <a class="home" href="/">
          <svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
            <path d="M4 5h16M6.5 10h11M9 15h6M11 20h2" />
          </svg>
          {t.allSales}
        </a>
        <label class="lang">
          <span class="sr">{t.language}</span>
          <select value={tag} onChange={(event) => setLanguage(event.currentTarget.value)}>
            {tags.map((tag) => (
              <option key={tag} value={tag} lang={tag}>
                {nameOf(tag)}
              </option>
            ))}
          </select>
        </label>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <footer class="foot">{t.footer}</footer>
    </>
  );
}

/** A card that says one thing, and perhaps what to do about it. */
export function Message(props: {
  title: string;
  more?: string;
  tone?: "good" | "calm" | "busy";
  children?: ComponentChildren;
}) {
  return (
    <section class={`card ${props.tone ?? "calm"}`}>
      {props.tone === "busy" && <div class="pulse" aria-hidden="true" />}
      <h1>{props.title}</h1>
      {props.more && <p class="more">{props.more}</p>}
      {props.children}
    </section>
  );
}

export function NotFound() {
  const { t } = language.value;
  useTitle(t.notFound);
  return (
    <Message title={t.notFound} more={t.notFoundMore}>
      <a class="button" href="/">
        {t.allSales}
      </a>
    </Message>
  );
}
