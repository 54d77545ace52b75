import { useRef, useState } from "preact/hooks";
import { language } from "../lang/index.ts";
import type { Code } from "../qr.ts";

/** Goes on with the same place on another device, by a link or by a code that a phone can read. */
export function Share({ link }: { link: () => string }) {
  const { t } = language.value;
  const dialog = useRef<HTMLDialogElement>(null);
  const [code, setCode] = useState<Code>();
  const [copied, setCopied] = useState(false);
  const open = async () => {
    setCopied(false);
    dialog.current?.showModal();
    try {
      setCode((await import("../qr.ts")).encode(link()));
    } catch {
      // The code cannot be drawn, or its file did not come. The link is there.
    }
  };
  const copy = async () => {
    await navigator.clipboard.writeText(link());
    setCopied(true);
  };
  return (
    <>
      <button type="button" class="quiet" onClick={open}>
        {t.share}
      </button>
      <dialog ref={dialog} aria-labelledby="share-title" aria-describedby="share-more">
        <h2 id="share-title">{t.share}</h2>
        <p id="share-more">{t.shareMore}</p>
        {code && (
          <svg class="qr" viewBox={`0 0 ${code.size} ${code.size}`} role="img" aria-label={t.shareCode}>
            <path d={code.path} />
          </svg>
        )}
        <div class="row">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>
            {t.close}
          </button>
          {navigator.clipboard && (
            <button type="button" class="button second" onClick={copy}>
              {copied ? t.copied : t.copy}
            </button>
          )}
        </div>
      </dialog>
    </>
  );
}
