import { RoundRobin } from '../../runtime/collections/round-robin.ts';

interface TurnBounds {
  readonly ledgersAtOnce: number;
  /** Less than `ledgersAtOnce`, so that ledgers of one owner never keep those of all others waiting. */
  readonly ofOneOwner: number;
}

/** Of ledgers that nobody watches any more, whose cursors are to be removed. */
const nobody: readonly string[] = [''];

/**
 * Which ledger is fanned out next. Owners of subscriptions take turns, however many ledgers each of them watches. A
 * ledger waits for each owner that watches it, and runs at the first turn of one of them.
 */
export class LedgerTurns {
  readonly #bounds: TurnBounds;
  readonly #turns: RoundRobin<string>;
  /** The owners that each waiting ledger waits for. */
  readonly #waiting = new Map<string, readonly string[]>();
  /** The owner whose turn each running ledger took. */
  readonly #running = new Map<string, string>();

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
  add(ledgerId: string, watchers: readonly string[]): void {
    if (this.#waiting.has(ledgerId)) return;
    const owners = watchers.length === 0 ? nobody : watchers;
    this.#waiting.set(ledgerId, owners);
    for (const owner of owners) this.#turns.add(owner, ledgerId);
  }

  /** The ledger does not wait any more. If it runs, it still does. */
  delete(ledgerId: string): void {
    for (const owner of this.#waiting.get(ledgerId) ?? []) this.#turns.delete(owner, ledgerId);
    this.#waiting.delete(ledgerId);
  }

  /** The next ledger runs from now on, until `end`. null: none may run now. */
  begin(): string | null {
    if (this.#running.size >= this.#bounds.ledgersAtOnce) return null;
    const next = this.#turns.next((owner) => this.#runningOf(owner) < this.#bounds.ofOneOwner);
    if (next === null) return null;
    const { owner, item: ledgerId } = next;
    this.#turns.served(owner, ledgerId);
    this.delete(ledgerId);
    this.#running.set(ledgerId, owner);
    return ledgerId;
  }

  end(ledgerId: string): void {
    this.#running.delete(ledgerId);
  }

  #runningOf(owner: string): number {
    let count = 0;
    for (const other of this.#running.values()) if (other === owner) count += 1;
    return count;
  }
}
