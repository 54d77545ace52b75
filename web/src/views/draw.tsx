import { useState } from "preact/hooks";
import type { Outcome } from "../draw.ts";
import { language } from "../lang/index.ts";

type Progress = "idle" | "busy" | "insecure" | "none" | "unreached" | Outcome;

/** The draw of a lottery, repeated in the page when the shopper asks for it. */
export function DrawCheck({ check }: { check: () => Promise<Outcome> }) {
  const { t } = language.value;
  const [progress, setProgress] = useState<Progress>("idle");
  const run = async () => {
    setProgress("busy");
    try {
      setProgress(await check());
    } catch (error) {
      const why = error instanceof Error ? error.message : "";
      setProgress(why === "insecure" || why === "none" ? why : "unreached");
    }
  };
  const done = typeof progress === "object" ? progress : undefined;
  return (
    <div class="draw">
      <p class="more">{t.drawn}</p>
      {done ? (
        <>
          <ul class="checks">
            {done.checks.map(({ step, holds }) => (
              <li key={step} class={holds ? "holds" : "fails"} data-step={step} data-holds={holds}>
                {t.drawStep[step]}
              </li>
            ))}
          </ul>
          <p class="label" role="status">
            {done.checks.every((c) => c.holds) ? t.drawHolds : t.drawFails}
          </p>
          <p class="more">
            {t.drawRoot} <code class="hash">{done.root}</code>
          </p>
        </>
      ) : (
        <>
          <button type="button" class="quiet" onClick={run} disabled={progress === "busy"}>
            {progress === "busy" ? t.drawBusy : t.drawCheck}
          </button>
          {typeof progress === "string" && progress !== "idle" && progress !== "busy" && (
            <p class="label" role="status">
              {t.drawTrouble[progress]}
            </p>
          )}
        </>
      )}
    </div>
  );
}

/** What the operator is bound to before the draw. */
export function Commitment({ commitment }: { commitment: string }) {
  const { t } = language.value;
  return (
    <p class="more">
      {t.commitment} <code class="hash">{commitment}</code>
    </p>
  );
}
