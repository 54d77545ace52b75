import { chromium } from "playwright-core";

/** The browser of this system: $SLUICE_TEST_CHROMIUM, else /usr/bin/chromium. */
export function openBrowser() {
  return chromium.launch({
    executablePath: process.env.SLUICE_TEST_CHROMIUM || "/usr/bin/chromium",
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}
