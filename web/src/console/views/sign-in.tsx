import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useTitle } from "../../title.ts";
import { language } from "../lang/index.ts";
import type { Refusal, Session } from "../session.ts";
import { ProblemText } from "./parts.tsx";

/** Asks for the admin token. */
export function SignIn({ session }: { session: Session }) {
  const { t } = language.value;
  const [busy, setBusy] = useState(false);
  const refusal = session.refusal.value;
  useTitle(`${t.signIn} · ${t.console}`);
  const submit = async (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get("token")).trim();
    setBusy(true);
    await session.signIn(token);
    setBusy(false);
  };
  return (
    <section class="panel sign-in">
      <h1>{t.signIn}</h1>
      <p class="soft">{t.signInMore}</p>
      <form onSubmit={submit}>
        <label class="field">
          <span>{t.token}</span>
          <input
            name="token"
            type="password"
            required
            autocomplete="off"
            spellcheck={false}
            aria-describedby="refusal"
            aria-invalid={refusal?.kind === "wrong"}
          />
        </label>
        <p id="refusal" role="alert" class={refusal && refusal.kind !== "out" ? "banner alert" : "soft"}>
          {refusal && refusalWords(refusal)}
        </p>
        <button type="submit" class="button" disabled={busy}>
          {busy ? t.signingIn : t.signIn}
        </button>
      </form>
    </section>
  );
}

function refusalWords(refusal: Refusal): ComponentChildren {
  const { t } = language.value;
  switch (refusal.kind) {
    case "wrong":
      return t.wrongToken;
    case "refused":
      return t.tokenRefused;
    case "out":
      return t.signedOut;
    case "problem":
      return <ProblemText problem={refusal.problem} />;
  }
}
