import { RoundRobin } from '../../runtime/collections/round-robin.ts';

interface TurnBounds {
  readonly ledgersAtOnce: number;
  /** Less than `ledgersAtOnce`, so that ledgers of one owner never keep those of all others waiting. */
  readonly ofOneOwner: number;
}

/** Has the turns of ledgers that nobody watches any more, whose cursors are to be removed. */
const nobody = '';

/**
 * Which ledger is fanned out next. Owners of subscriptions take turns, however many ledgers each of them watches. A
 * ledger that several owners watch takes the turn of the one with the fewest ledgers.
 */
export class LedgerTurns {
  readonly #bounds: TurnBounds;
  readonly #turns: RoundRobin<string>;
  /** The owner whose turn a ledger waits for, or took. */
  readonly #waiting = new Map<string, string>();
  readonly #running = new Map<string, string>();
  /** How many ledgers wait for a turn of each owner, or have it. */
  readonly #counts = new Map<string, number>();

  constructor(bounds: TurnBounds) {
    this.#bounds = bounds;
    this.#turns = new RoundRobin({ isOpen: (ledgerId) => !this.#running.has(ledgerId), first: 'oldest' });
  }

  get running(): number {
    return this.#running.size;
  }

  /** Whether the ledger waits or runs. */
  has(ledgerId: string): boolean {
    return this.#waiting.has(ledgerId) || this.#running.has(ledgerId);
  }

  /** A ledger that waits already keeps its place. */
  add(ledgerId: string, watchers: Iterable<string>): void {
    if (this.#waiting.has(ledgerId)) return;
    const owner = this.#leastOf(watchers);
    this.#waiting.set(ledgerId, owner);
    this.#count(owner, 1);
    this.#turns.add(owner, ledgerId);
  }

  /** The ledger does not wait any more. If it runs, it still does. */
  delete(ledgerId: string): void {
    const owner = this.#waiting.get(ledgerId);
    if (owner === undefined) return;
    this.#waiting.delete(ledgerId);
    this.#count(owner, -1);
    this.#turns.delete(owner, ledgerId);
  }

  /** The next ledger runs from now on, until `end`. null: none may run now. */
  begin(): string | null {
    if (this.#running.size >= this.#bounds.ledgersAtOnce) return null;
    const next = this.#turns.next((owner) => this.#runningOf(owner) < this.#bounds.ofOneOwner);
    if (next === null) return null;
    const { owner, item: ledgerId } = next;
    this.#turns.served(owner, ledgerId);
    this.#waiting.delete(ledgerId);
    this.#running.set(ledgerId, owner);
    return ledgerId;
  }

  end(ledgerId: string): void {
    const owner = this.#running.get(ledgerId);
    if (owner === undefined) return;
    this.#running.delete(ledgerId);
    this.#count(owner, -1);
  }

  #leastOf(watchers: Iterable<string>): string {
    let least = nobody;
    let fewest = Number.POSITIVE_INFINITY;
    for (const watcher of watchers) {
      const count = this.#counts.get(watcher) ?? 0;
      if (count < fewest) [least, fewest] = [watcher, count];
      if (count === 0) break;
    }
    return least;
  }

  #count(owner: string, more: 1 | -1): void {
    const count = (this.#counts.get(owner) ?? 0) + more;
    if (count > 0) this.#counts.set(owner, count);
    else this.#counts.delete(owner);
  }

  #runningOf(owner: string): number {
    let count = 0;
    for (const other of this.#running.values()) if (other === owner) count += 1;
    return count;
  }
}
