// What outlives a reload: the admin token for as long as the tab, the language for good. Where the browser keeps nothing
// (private windows, blocked storage), both last as long as the page.

const TOKEN = "sluice:admin";
const LANGUAGE = "sluice:lang"; // the same as the shopper's page, so that one choice serves both

export function readToken(): string {
  try {
    return sessionStorage.getItem(TOKEN) ?? "";
  } catch {
    return "";
  }
}

export function writeToken(token: string): void {
  try {
    if (token) sessionStorage.setItem(TOKEN, token);
    else sessionStorage.removeItem(TOKEN);
  } catch {
    // the page has it
  }
}

export function readLanguage(): string {
  try {
    const tag: unknown = JSON.parse(localStorage.getItem(LANGUAGE) ?? '""');
    return typeof tag === "string" ? tag : "";
  } catch {
    return "";
  }
}

export function writeLanguage(tag: string): void {
  try {
    localStorage.setItem(LANGUAGE, JSON.stringify(tag));
  } catch {
    // the page has it
  }
}
