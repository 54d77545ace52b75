import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Attention } from "../src/attention.ts";
import { Store } from "../src/identity.ts";

let shown: { title: string; options: NotificationOptions }[] = [];
let tones = 0;

/** A browser that answers its question for permission in one way. */
function browser(permission: NotificationPermission, answer: NotificationPermission = permission) {
  class Shown {
    static permission = permission;
    static requestPermission = vi.fn(async () => {
      Shown.permission = answer;
      return answer;
    });
    onclick: unknown;
    constructor(title: string, options: NotificationOptions) {
      shown.push({ title, options });
    }
    close() {}
  }
  vi.stubGlobal("Notification", Shown);
  return Shown;
}

function looking(state: DocumentVisibilityState) {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue(state);
}

beforeEach(() => {
  shown = [];
  tones = 0;
  localStorage.clear();
  const ramp = { setValueAtTime() {}, exponentialRampToValueAtTime() {} };
  vi.stubGlobal(
    "AudioContext",
    class {
      currentTime = 0;
      destination = {};
      resume = async () => {};
      createGain = () => ({ gain: ramp, connect: (to: unknown) => to });
      createOscillator = () => ({
        frequency: { value: 0 },
        connect: (to: { connect: (to: unknown) => unknown }) => to,
        start: () => tones++,
        stop() {},
      });
    },
  );
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

describe("a call", () => {
  it("is neither made nor asked permission for until it is wished", () => {
    const system = browser("default");
    const attention = new Attention(new Store());
    attention.call("turn", "sale", "en");
    expect(system.requestPermission).not.toHaveBeenCalled();
    expect([tones, shown]).toEqual([0, []]);
  });

  it("is heard, and seen by who looks elsewhere", async () => {
    browser("default", "granted");
    const attention = new Attention(new Store());
    await attention.on();
    expect(attention.means.value).toBe("notification");
    looking("visible");
    attention.call("turn", "sale", "en");
    expect([tones, shown.length]).toEqual([2, 0]);
    looking("hidden");
    attention.call("turn", "sale", "en");
    expect(shown).toEqual([{ title: "turn", options: { body: "sale", lang: "en", tag: location.pathname } }]);
  });

  it("is heard only, where notifications are denied or unknown", async () => {
    const system = browser("denied");
    const attention = new Attention(new Store());
    await attention.on();
    expect(attention.means.value).toBe("sound");
    expect(system.requestPermission, "who has said no is not asked again").not.toHaveBeenCalled();
    vi.stubGlobal("Notification", undefined);
    looking("hidden");
    attention.call("turn", "sale", "en");
    expect([tones, shown]).toEqual([2, []]);
  });

  it("is made once for a turn that comes, and not for one that is found", () => {
    browser("denied");
    const attention = new Attention(new Store());
    const call = vi.spyOn(attention, "call").mockImplementation(() => {});
    attention.follow("turn", true, "t", "s", "en");
    attention.follow("turn", true, "t", "s", "zh"); // the page is drawn anew in another language
    expect(call).not.toHaveBeenCalled();
    attention.follow("queued", false, "t", "s", "en");
    attention.follow("turn", true, "t", "s", "en");
    attention.follow("turn", true, "t", "s", "zh");
    expect(call).toHaveBeenCalledOnce();
  });

  it("promises no notification where the system shows none", async () => {
    browser("granted");
    const attention = new Attention(new Store());
    await attention.on();
    vi.stubGlobal(
      "Notification",
      Object.assign(
        () => {
          throw new TypeError("Illegal constructor");
        },
        { permission: "granted" },
      ),
    );
    looking("hidden");
    attention.call("turn", "sale", "en");
    expect(attention.means.value).toBe("sound");
  });

  it("is wished for beyond a reload, and until it is taken back", async () => {
    browser("granted");
    const store = new Store();
    await new Attention(store).on();
    const reloaded = new Attention(store);
    expect(reloaded.means.value).toBe("notification");
    reloaded.off();
    expect(new Attention(store).means.value).toBe("none");
  });
});
