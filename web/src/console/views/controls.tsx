import { useState } from "preact/hooks";
import { type Control, controls, enabled } from "../controls.ts";
import { language } from "../lang/index.ts";
import type { LogEntry, Sale } from "../types.ts";
import { Ask } from "./ask.tsx";

interface Props {
  sale: Sale;
  log: LogEntry[] | undefined;
  more?: boolean; // the log goes further back than what is known of it
  act: (control: Control, asked: Sale, fields: FormData) => Promise<void>;
}

/** What can be done to the sale now. Each asks first. */
export function Controls({ sale, log, more = false, act }: Props) {
  const { t } = language.value;
  const [asking, setAsking] = useState<Control>();
  const possible = enabled(sale.state, log, more);
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for what is filled in */}
      <div class="controls" role="group" aria-label={t.controls}>
        {controls.map((control) => (
          <button
            key={control}
            type="button"
            class={`button second ${control}`}
            disabled={!possible.has(control)}
            onClick={() => setAsking(control)}
          >
            {t.control[control]}
          </button>
        ))}
      </div>
      {asking && (
        <Ask
          control={asking}
          sale={sale}
          act={(asked, fields) => act(asking, asked, fields)}
          onClose={() => setAsking(undefined)}
        />
      )}
    </>
  );
}
