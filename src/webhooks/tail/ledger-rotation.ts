import { RoundRobin } from '../../runtime/collections/round-robin.ts';

interface RotationBounds {
  readonly ledgersAtOnce: number;
  /** Less than `ledgersAtOnce`, so that ledgers of one owner never keep those of all others waiting. */
  readonly ofOneOwner: number;
}

/** The owner of ledgers that nobody watches any more, whose cursors are to be removed. */
const nobody = '';

/** An owner that has as many ledgers at once as it may ranks behind all that have not. */
const busyRank = 2 ** 40;

/**
 * Which ledger is fanned out next: round-robin among the owners of subscriptions, however many ledgers each of them
 * watches. A ledger that several owners watch counts for the one with the fewest ledgers. An owner that has as many at
 * once as it may is taken only if all have.
 */
export class LedgerRotation {
  readonly #bounds: RotationBounds;
  readonly #rotation: RoundRobin<string>;
  /** The owner that a ledger counts for. */
  readonly #waiting = new Map<string, string>();
  readonly #running = new Map<string, string>();
  /** How many ledgers that wait or run count for each owner. */
  readonly #counts = new Map<string, number>();

  constructor(bounds: RotationBounds) {
    this.#bounds = bounds;
    this.#rotation = new RoundRobin({ isOpen: (ledgerId) => !this.#running.has(ledgerId), first: 'oldest' });
  }

  get running(): number {
    return this.#running.size;
  }

  /** Whether the ledger waits or runs. */
  has(ledgerId: string): boolean {
    return this.#waiting.has(ledgerId) || this.#running.has(ledgerId);
  }

  /** A ledger that waits already keeps its place, unless it has its first watcher only now. */
  add(ledgerId: string, watchers: Iterable<string>): void {
    const before = this.#waiting.get(ledgerId);
    if (before !== undefined && before !== nobody) return;
    const owner = this.#leastOf(watchers);
    if (owner === before) return;
    this.delete(ledgerId);
    this.#waiting.set(ledgerId, owner);
    this.#count(owner, 1);
    this.#rotation.add(owner, ledgerId);
  }

  /** The ledger does not wait any more. If it runs, it still does. */
  delete(ledgerId: string): void {
    const owner = this.#waiting.get(ledgerId);
    if (owner === undefined) return;
    this.#waiting.delete(ledgerId);
    this.#count(owner, -1);
    this.#rotation.delete(owner, ledgerId);
  }

  /** The next ledger runs from now on, until `end`. null: none may run now. */
  begin(): string | null {
    if (this.#running.size >= this.#bounds.ledgersAtOnce) return null;
    const next = this.#rotation.next((owner) => this.#mayBegin(owner));
    if (next === null) return null;
    const { owner, item: ledgerId } = next;
    this.#rotation.served(owner, ledgerId);
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
    const busy = new Set([...this.#running.values()].filter((owner) => !this.#mayBegin(owner)));
    let least = nobody;
    let lowest = Number.POSITIVE_INFINITY;
    for (const watcher of watchers) {
      const count = this.#counts.get(watcher) ?? 0;
      if (count >= lowest) continue;
      const rank = busy.has(watcher) ? busyRank + count : count;
      if (rank < lowest) [least, lowest] = [watcher, rank];
      if (count === 0) break;
    }
    return least;
  }

  #count(owner: string, more: 1 | -1): void {
    const count = (this.#counts.get(owner) ?? 0) + more;
    if (count > 0) this.#counts.set(owner, count);
    else this.#counts.delete(owner);
  }

  #mayBegin(owner: string): boolean {
    let running = 0;
    for (const other of this.#running.values()) if (other === owner) running += 1;
    return running < this.#bounds.ofOneOwner;
  }
}
