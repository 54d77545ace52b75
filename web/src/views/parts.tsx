import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { language } from "../lang/index.ts";
import { now } from "../ticker.ts";

/** The time until a moment, as a clock. */
export function Countdown({ until, frozen }: { until: number; frozen?: boolean | undefined }) {
  const time = useCell(now);
  const stopped = useRef(0);
  if (!frozen || stopped.current === 0) stopped.current = time;
  return <span class="digits">{language.value.f.clock(until - stopped.current)}</span>;
}

/** A bar from nothing (0) to full (1). */
export function Bar({ value, label, urgent }: { value: number; label: string; urgent?: boolean }) {
  const part = Math.min(1, Math.max(0, value));
  return (
    <div
      class={urgent ? "bar urgent" : "bar"}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(part * 100)}
    >
      <div style={{ transform: `scaleX(${part.toFixed(4)})` }} />
    </div>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const SAY_EVERY_MS = 10_000;

/**
 * Says a sentence to those who listen instead of looking: at once when the subject changes, else at most every ten
 * seconds, since a position that moves every second would drown everything else.
 */
export function Announce({ subject, text }: { subject: string; text: string }) {
  const [said, setSaid] = useState("");
  const last = useRef({ subject: "", at: 0 });
  useEffect(() => {
    const wait = subject === last.current.subject ? last.current.at + SAY_EVERY_MS - Date.now() : 0;
    const timer = setTimeout(
      () => {
        last.current = { subject, at: Date.now() };
        setSaid(text);
      },
      Math.max(0, wait),
    );
    return () => clearTimeout(timer);
  }, [subject, text]);
  return (
    <p class="sr" role="status" aria-live="polite">
      {said}
    </p>
  );
}

/** Does what cannot be taken back, after asking once. */
export function Ask(props: {
  id: string;
  label: string;
  title: string;
  more: string;
  yes: string;
  no: string;
  run: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <button type="button" class="quiet" onClick={() => dialog.current?.showModal()}>
        {props.label}
      </button>
      <dialog ref={dialog} aria-labelledby={`${props.id}-title`} aria-describedby={`${props.id}-more`}>
        <h2 id={`${props.id}-title`}>{props.title}</h2>
        <p id={`${props.id}-more`}>{props.more}</p>
        <div class="row">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>
            {props.no}
          </button>
          <button
            type="button"
            class="button second"
            onClick={() => {
              dialog.current?.close();
              props.run();
            }}
          >
            {props.yes}
          </button>
        </div>
      </dialog>
    </>
  );
}
