import { messageBytesMax, messageItemsMax } from './exchange-method.ts';

/** Something to write to that says when it has enough. */
export interface Sink<T> {
  /** False: no more until `drained`. */
  write(items: T[]): boolean;
}

/**
 * Gathers what is sent in one turn of the event loop into few messages, in order. While the other side does not read, it waits here.
 */
export class Outgoing<T> {
  readonly #sink: Sink<T>;
  readonly #sizeOf: (item: T) => number;
  #waiting: T[] = [];
  #planned = false;
  #open: boolean;

  /** `sizeOf` in bytes. `open` false: nothing is written until `drained` is called. */
  constructor(sink: Sink<T>, sizeOf: (item: T) => number, open = true) {
    this.#sink = sink;
    this.#sizeOf = sizeOf;
    this.#open = open;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Whether the other side takes more. */
  get isOpen(): boolean {
    return this.#open;
  }

  push(item: T): void {
    this.#waiting.push(item);
    if (this.#planned || !this.#open) return;
    this.#planned = true;
    setImmediate(() => this.flush());
  }

  /** The other side reads again. */
  drained(): void {
    this.#open = true;
    this.flush();
  }

  flush(): void {
    this.#planned = false;
    let from = 0;
    while (this.#open && from < this.#waiting.length) {
      const to = this.#endOfMessage(from);
      this.#open = this.#sink.write(this.#waiting.slice(from, to));
      from = to;
    }
    if (from > 0) this.#waiting = this.#waiting.slice(from);
  }

  #endOfMessage(from: number): number {
    let bytes = 0;
    let to = from;
    for (; to < this.#waiting.length && to - from < messageItemsMax; to++) {
      const item = this.#waiting[to];
      if (item === undefined) break;
      bytes += this.#sizeOf(item);
      if (to > from && bytes > messageBytesMax) break;
    }
    return to;
  }
}
