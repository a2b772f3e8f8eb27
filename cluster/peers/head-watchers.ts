import { isUuid } from '../../src/domain/values/uuid-form.ts';
import { messageItemsMax } from './exchange-method.ts';

/** Ledgers of one peer. Of more, it asks the store itself. */
const ledgersMax = 20_000;

type Tell = (heads: readonly { readonly ledgerId: string; readonly seq: bigint }[]) => boolean;

interface Watcher {
  readonly ledgers: Set<string>;
  readonly tell: Tell;
  /** Heads that are not told yet, the newest of each ledger. */
  readonly heads: Map<string, number>;
}

/** The ledgers of which other nodes want to hear, by the streams that they have opened. */
export class HeadWatchers {
  readonly #byLedger = new Map<string, Set<Watcher>>();
  readonly #due = new Set<Watcher>();

  /** `tell` sends heads to the peer. Where it returns false, they are dropped: the peer looks by itself. */
  open(tell: Tell): Disposable & { add(ledgerId: string): void; remove(ledgerId: string): void } {
    const watcher: Watcher = { ledgers: new Set(), tell, heads: new Map() };
    return {
      add: (ledgerId) => this.#add(watcher, ledgerId),
      remove: (ledgerId) => this.#remove(watcher, ledgerId),
      [Symbol.dispose]: () => {
        for (const ledgerId of [...watcher.ledgers]) this.#remove(watcher, ledgerId);
        this.#due.delete(watcher);
      },
    };
  }

  /** This node has committed. The heads of one turn of the event loop make as few messages as they fit into. */
  committed(ledgerId: string, seq: number): void {
    for (const watcher of this.#byLedger.get(ledgerId) ?? []) {
      watcher.heads.set(ledgerId, seq);
      if (this.#due.size === 0) setImmediate(() => this.#tellAll());
      this.#due.add(watcher);
    }
  }

  #tellAll(): void {
    for (const { heads, tell } of this.#due) {
      const told = Array.from(heads, ([ledgerId, seq]) => ({ ledgerId, seq: BigInt(seq) }));
      heads.clear();
      for (let at = 0; at < told.length; at += messageItemsMax) tell(told.slice(at, at + messageItemsMax));
    }
    this.#due.clear();
  }

  #add(watcher: Watcher, ledgerId: string): void {
    // What is no id would be held for nothing, in a length that the peer chooses.
    if (watcher.ledgers.size >= ledgersMax || !isUuid(ledgerId)) return;
    watcher.ledgers.add(ledgerId);
    const watchers = this.#byLedger.get(ledgerId) ?? new Set();
    this.#byLedger.set(ledgerId, watchers.add(watcher));
  }

  #remove(watcher: Watcher, ledgerId: string): void {
    watcher.ledgers.delete(ledgerId);
    const watchers = this.#byLedger.get(ledgerId);
    if (watchers?.delete(watcher) && watchers.size === 0) this.#byLedger.delete(ledgerId);
  }
}
