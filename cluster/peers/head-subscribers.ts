import { isUuid } from '../../src/domain/values/uuid-form.ts';
import { messageItemsMax } from './exchange-method.ts';

/** Ledgers of one peer. Of more, it asks the store itself. */
const ledgersMax = 20_000;

type Tell = (heads: readonly { readonly ledgerId: string; readonly seq: bigint }[]) => boolean;

interface Subscriber {
  readonly ledgers: Set<string>;
  readonly tell: Tell;
  /** Heads that are not told yet, the newest of each ledger. */
  readonly heads: Map<string, number>;
}

/** The ledgers of which other nodes want to hear, by the streams that they have opened. */
export class HeadSubscribers {
  readonly #byLedger = new Map<string, Set<Subscriber>>();
  readonly #due = new Set<Subscriber>();

  /** `tell` sends heads to the peer. Where it returns false, they are dropped: the peer looks by itself. */
  open(tell: Tell): Disposable & { add(ledgerId: string): void; remove(ledgerId: string): void } {
    const subscriber: Subscriber = { ledgers: new Set(), tell, heads: new Map() };
    return {
      add: (ledgerId) => this.#add(subscriber, ledgerId),
      remove: (ledgerId) => this.#remove(subscriber, ledgerId),
      [Symbol.dispose]: () => {
        for (const ledgerId of [...subscriber.ledgers]) this.#remove(subscriber, ledgerId);
        this.#due.delete(subscriber);
      },
    };
  }

  /** This node has committed. The heads of one turn of the event loop make as few messages as they fit into. */
  committed(ledgerId: string, seq: number): void {
    for (const subscriber of this.#byLedger.get(ledgerId) ?? []) {
      subscriber.heads.set(ledgerId, seq);
      if (this.#due.size === 0) setImmediate(() => this.#tellAll());
      this.#due.add(subscriber);
    }
  }

  #tellAll(): void {
    for (const { heads, tell } of this.#due) {
      const due = Array.from(heads, ([ledgerId, seq]) => ({ ledgerId, seq: BigInt(seq) }));
      heads.clear();
      for (let at = 0; at < due.length; at += messageItemsMax) tell(due.slice(at, at + messageItemsMax));
    }
    this.#due.clear();
  }

  #add(subscriber: Subscriber, ledgerId: string): void {
    // What is no id would be held for nothing, in a length that the peer chooses.
    if (subscriber.ledgers.size >= ledgersMax || !isUuid(ledgerId)) return;
    subscriber.ledgers.add(ledgerId);
    const subscribers = this.#byLedger.get(ledgerId) ?? new Set();
    this.#byLedger.set(ledgerId, subscribers.add(subscriber));
  }

  #remove(subscriber: Subscriber, ledgerId: string): void {
    subscriber.ledgers.delete(ledgerId);
    const subscribers = this.#byLedger.get(ledgerId);
    if (subscribers?.delete(subscriber) && subscribers.size === 0) this.#byLedger.delete(ledgerId);
  }
}
