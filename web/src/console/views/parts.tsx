import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Clock } from "../../clock.ts";
import type { Problem } from "../api.ts";
import { language } from "../lang/index.ts";
import { now } from "../ticking.ts";
import type { Sale } from "../types.ts";
import { heldBackWords, problemWords } from "./words.ts";

/** A box with a heading. */
export function Panel(props: {
  title: string;
  class?: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class={`panel ${props.class ?? ""}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{props.title}</h2>
        {props.aside}
      </header>
      {props.children}
    </section>
  );
}

/** Something wider than a phone, or very long, which then moves inside its box; the keyboard can move it too. */
export function Scroll(props: { label: string; class?: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for what is filled in
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without a focus of its own it could not be moved by the keyboard
    <div class={`scroll ${props.class ?? ""}`} role="group" aria-label={props.label} tabIndex={0}>
      {props.children}
    </div>
  );
}

/** A bar from nothing (0) to full (1). What it shows stands beside it in figures, so it is not read out. */
export function Bar({ value }: { value: number }) {
  const part = Math.min(1, Math.max(0, value));
  return (
    <div class="bar" aria-hidden="true">
      <div style={{ inlineSize: `${(part * 100).toFixed(2)}%` }} />
    </div>
  );
}

/** State and stock of a sale. Colour only repeats what the words say. */
export function Chips({ sale }: { sale: Pick<Sale, "state" | "stock"> }) {
  const { t } = language.value;
  return (
    <span class="chips">
      {sale.state && <span class={`chip ${sale.state}`}>{t.state[sale.state]}</span>}
      {sale.stock && sale.stock !== "available" && <span class={`chip ${sale.stock}`}>{t.stock[sale.stock]}</span>}
    </span>
  );
}

export function ProblemLine({ problem, title }: { problem: Problem | undefined; title?: string }) {
  if (!problem) return null;
  return (
    <p class="banner alert" role="alert">
      {title && <strong>{title} </strong>}
      <ProblemText problem={problem} />
    </p>
  );
}

/** Why something was not done, in one sentence. */
export function ProblemText({ problem }: { problem: Problem }) {
  return (
    <>
      {problemWords(problem, language.value)}
      {problem.detail && (language.value.tag === "en" || !heldBackWords(problem.detail, language.value)) && (
        <span lang="en">{problem.detail}</span>
      )}
    </>
  );
}

/** The time until a moment, as a clock by the server's time. */
export function Countdown({ until }: { until: number }) {
  return <span class="digits">{language.value.f.clock(until - now.value)}</span>;
}

/** Says a sentence to those who listen instead of looking, each time that it becomes another. */
export function Announce({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSaid(text), 100);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <p class="sr" role="status" aria-live="polite">
      {said}
    </p>
  );
}

/** Moves `now` on by the server's time, for as long as the page is there. */
export function useTicking(clock: Clock): void {
  useEffect(() => {
    const update = () => {
      now.value = clock.now();
    };
    update();
    const timer = setInterval(update, 250);
    return () => clearInterval(timer);
  }, [clock]);
}

/** Runs something at once and then again and again, while somebody looks. What has not ended yet is not begun again. */
export function useEvery(ms: number, run: () => Promise<void>, key: unknown): void {
  const latest = useRef(run);
  latest.current = run;
  // The key says of what it is, and a new one begins anew.
  useEffect(() => {
    let busy = false;
    const look = async () => {
      if (busy || document.visibilityState !== "visible") return;
      busy = true;
      await latest.current().finally(() => {
        busy = false;
      });
    };
    void look();
    const timer = setInterval(look, ms);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [ms, key]);
}
