import { useEffect } from "preact/hooks";

/** The window's title carries the state, for those who look at it from another tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title;
  }, [title]);
}
