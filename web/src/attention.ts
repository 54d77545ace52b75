import badge from "./badge.svg?url";
import { Cell } from "./cell.ts";
import icon from "./icon.svg?url";
import type { Store } from "./identity.ts";

/** How a shopper who looks elsewhere is told: not at all, by a sound, or by a notification of the system as well. */
export type Means = "none" | "sound" | "notification";

const KEY = "sluice:call";

/**
 * Calls a shopper who looks elsewhere when the turn has come. It is off until they ask for it, and the system's own
 * question for permission comes only then.
 */
export class Attention {
  readonly means = new Cell<Means>("none");
  #audio: AudioContext | undefined;
  #last = "connecting"; // the view that was followed last

  constructor(private readonly store: Store) {
    if (!store.read<boolean>(KEY)) return;
    this.means.value = permission() === "granted" ? "notification" : "sound";
    // After a reload a browser lets a page sound only once somebody has touched it.
    for (const event of ["click", "keydown"]) addEventListener(event, () => this.#wake(), { once: true });
  }

  /** Turns it on, and asks for what that needs; must be called from a click. */
  async on(): Promise<void> {
    this.#wake();
    this.means.value = "sound";
    this.store.write(KEY, true);
    if (permission() === "default") await Notification.requestPermission();
    if (permission() === "granted") this.means.value = "notification";
  }

  off(): void {
    this.means.value = "none";
    this.store.write(KEY, undefined);
  }

  /** Follows what the shopper is in, and calls when a turn comes to somebody who has waited. */
  follow(view: string, turn: boolean, title: string, body: string, lang: string): void {
    // A page that was loaded in the middle of a turn has nothing new to tell.
    if (turn && view !== this.#last && this.#last !== "connecting") this.call(title, body, lang);
    this.#last = view;
  }

  /** Calls now, if the shopper wished it. */
  call(title: string, body: string, lang: string): void {
    if (this.means.value === "none") return;
    if (this.#audio) chime(this.#audio);
    navigator.vibrate?.([120, 80, 120]);
    if (document.visibilityState === "visible" || this.means.value !== "notification") return;
    try {
      const notification = new Notification(title, { body, lang, tag: location.pathname });
      notification.onclick = () => {
        window.focus();
        notification.close();
      };
    } catch {
      this.means.value = "sound"; // some systems show notifications of installed apps only
    }
  }

  #wake(): void {
    try {
      this.#audio ??= new AudioContext();
      void this.#audio.resume();
    } catch {
      // There is no sound on this device.
    }
  }
}

/** Marks the icon of the page, for those who look at it among other tabs. */
export function mark(on: boolean): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (link) link.href = on ? badge : icon;
}

/** Whether the system may show notifications of this page; undefined where it knows none. */
function permission(): NotificationPermission | undefined {
  return globalThis.Notification?.permission;
}

/** Two soft tones, the second a fourth above the first. */
function chime(audio: AudioContext): void {
  void audio.resume(); // a call or a lock of the screen may have stopped it
  for (const [after, pitch] of [
    [0, 660],
    [0.2, 880],
  ] as const) {
    const start = audio.currentTime + after;
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0.2, start);
    volume.gain.exponentialRampToValueAtTime(0.0001, start + 0.7);
    tone.connect(volume).connect(audio.destination);
    tone.start(start);
    tone.stop(start + 0.7);
  }
}
