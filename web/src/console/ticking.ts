import { signal } from "@preact/signals";

/** The server's time, moved on a few times a second. Only what shows a clock reads it, so only that is drawn again. */
export const now = signal(Date.now());
