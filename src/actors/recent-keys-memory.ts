import { recentKeysBytesMax } from './bounds.ts';
import { RecentKeys } from './recent-keys.ts';

/** What a ledger counts for beside its filters: more than its objects take. */
const ledgerBytes = 512;

/** Of all that a node may hold, a ledger may have a half. */
const ledgerShare = 0.5;

/**
 * What a node knows of the marks of its ledgers. Where there is too much of it, the ledgers that were asked for longest ago are forgotten.
 *
 * Invariant: what is left, what the ledgers' filters take, and what each ledger counts for beside them are the whole together.
 */
export class RecentKeysMemory {
  readonly #ledgers = new Map<string, RecentKeys>();
  readonly #bytesMax: number;
  #bytesLeft: number;

  constructor(bytesMax = recentKeysBytesMax) {
    this.#bytesMax = bytesMax;
    this.#bytesLeft = bytesMax;
  }

  get bytesLeft(): number {
    return this.#bytesLeft;
  }

  /** Of a ledger, for its actor: for no other one at the same time. What was forgotten meanwhile takes nothing any more: it is to be asked for anew. */
  of(ledgerId: string): RecentKeys {
    const known = this.#ledgers.get(ledgerId) ?? this.#added(ledgerId);
    // The newest stands last.
    this.#ledgers.delete(ledgerId);
    this.#ledgers.set(ledgerId, known);
    return known;
  }

  #added(ledgerId: string): RecentKeys {
    this.#take(ledgerBytes, ledgerId);
    const added: RecentKeys = new RecentKeys({
      take: (bytes, held) => {
        const isForgotten = this.#ledgers.get(ledgerId) !== added;
        if (isForgotten || bytes + held > this.#bytesMax * ledgerShare) return false;
        return this.#take(bytes, ledgerId);
      },
      giveBack: (bytes) => {
        this.#bytesLeft += bytes;
      },
    });
    return added;
  }

  /** For a ledger, which is not forgotten for it. */
  #take(bytes: number, taker: string): boolean {
    for (const [ledgerId, known] of this.#ledgers) {
      if (this.#bytesLeft >= bytes) break;
      if (ledgerId === taker) continue;
      known.release();
      this.#ledgers.delete(ledgerId);
      this.#bytesLeft += ledgerBytes;
    }
    if (this.#bytesLeft < bytes) return false;
    this.#bytesLeft -= bytes;
    return true;
  }
}
