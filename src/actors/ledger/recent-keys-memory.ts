import { recentKeysBytesMax } from '../bounds.ts';
import { RecentKeys } from './recent-keys.ts';

/** Charged for each ledger beside its filters: more than its objects take. */
const ledgerBytes = 512;

/** A ledger may have at most half of what the node may hold. */
const ledgerShare = 0.5;

/**
 * The recent keys of a node's ledgers, within a memory bound. If it is exceeded, the ledgers that were asked for
 * longest ago are forgotten.
 *
 * Invariant: the free bytes, the bytes of all filters, and the charge for each ledger add up to the bound.
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

  /**
   * The recent keys of a ledger, for its actor; no other actor may use them at the same time. An object that was
   * forgotten in the meantime takes no memory any more: call this again.
   */
  of(ledgerId: string): RecentKeys {
    const known = this.#ledgers.get(ledgerId) ?? this.#added(ledgerId);
    // The newest comes last.
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

  /** Takes bytes for the ledger `taker`. Forgets other ledgers if necessary. Returns whether there was enough. */
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
