import { messageBytesMax, messageItemsMax } from './exchange-method.ts';

/**
 * Combines the items that are sent in one iteration of the event loop into few messages, in order. Items wait here
 * while the other side does not read.
 */
export class Outgoing<T> {
  readonly #write: (items: T[]) => boolean;
  readonly #sizeOf: (item: T) => number;
  #waiting: T[] = [];
  #planned = false;
  #open: boolean;

  /**
   * `write` returns false if nothing more may be written until `drained` is called. `sizeOf` returns bytes. If `open`
   * is false, the first write waits for `drained`.
   */
  constructor(write: (items: T[]) => boolean, sizeOf: (item: T) => number, open = true) {
    this.#write = write;
    this.#sizeOf = sizeOf;
    this.#open = open;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Whether more may be written now. */
  get isOpen(): boolean {
    return this.#open;
  }

  push(item: T): void {
    this.#waiting.push(item);
    if (this.#planned || !this.#open) return;
    this.#planned = true;
    setImmediate(() => this.flush());
  }

  /** Call it when more may be written again. */
  drained(): void {
    this.#open = true;
    this.flush();
  }

  flush(): void {
    this.#planned = false;
    let from = 0;
    while (this.#open && from < this.#waiting.length) {
      const to = this.#endOfMessage(from);
      this.#open = this.#write(this.#waiting.slice(from, to));
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
