import { useLayoutEffect, useReducer } from "preact/hooks";

/** A value that changes, and those who want to know when it does. */
export class Cell<T> {
  readonly #readers = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set value(value: T) {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const tell of [...this.#readers]) tell();
  }

  /** Has tell called after each change, until what is returned is called. */
  subscribe(tell: () => void): () => void {
    this.#readers.add(tell);
    return () => this.#readers.delete(tell);
  }
}

/** The value of a cell; whoever asks for it is drawn again when it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [, again] = useReducer((n: number) => n + 1, 0);
  const { value } = cell;
  useLayoutEffect(() => {
    if (!Object.is(cell.value, value)) again(undefined); // it has changed between the drawing and now
    return cell.subscribe(() => again(undefined));
  }, [cell]);
  return value;
}
