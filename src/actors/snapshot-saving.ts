import type { LedgerStore, Snapshot } from '../store/ledger-store.ts';
import { snapshotEveryEvents, snapshotRetryEvents, snapshotWhenLeavingEvents } from './bounds.ts';

/**
 * When the folded state of one ledger or master is saved. Places count the owner's own events: seq of a ledger, master_seq of
 * a master.
 */
export class SnapshotSaving {
  readonly #store: LedgerStore;
  readonly #owner: string;
  /** Place of the newest snapshot that is there or on its way; -1 if none. */
  #saved: number;
  /** After a failure: not before this place again. */
  #retryAt = 0;

  constructor(store: LedgerStore, owner: string, saved: number) {
    this.#store = store;
    this.#owner = owner;
    this.#saved = saved;
  }

  /** Saves if the tail behind the last snapshot has grown enough. Resolves when that is done, failed saves included. */
  async saveWhenDue(place: number, snapshot: () => Snapshot): Promise<void> {
    if (place - this.#saved >= snapshotEveryEvents && place >= this.#retryAt) await this.#save(place, snapshot());
  }

  /** The owner leaves memory: saves unless reading the tail again is cheaper. */
  async saveWhenLeaving(place: number, snapshot: () => Snapshot): Promise<void> {
    if (place - this.#saved >= snapshotWhenLeavingEvents) await this.#save(place, snapshot());
  }

  async #save(place: number, snapshot: Snapshot): Promise<void> {
    const before = this.#saved;
    this.#saved = place;
    try {
      await this.#store.saveSnapshot(this.#owner, snapshot);
    } catch {
      // A snapshot that was not saved is only a longer replay, until the next one.
      if (this.#saved === place) this.#saved = before;
      this.#retryAt = place + snapshotRetryEvents;
    }
  }
}
