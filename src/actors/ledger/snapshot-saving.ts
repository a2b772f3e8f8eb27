import type { LedgerStore, Snapshot } from '../../store/ledger-store.ts';
import { snapshotEveryEvents, snapshotRetryEvents, snapshotWhenLeavingEvents } from '../bounds.ts';

/**
 * Decides when the state of a ledger or master is saved. A place counts its own events: seq, or master_seq. Nobody
 * waits for a save: one that fails does not reject, also if the state is too large to be made a text.
 */
export class SnapshotSaving {
  readonly #store: LedgerStore;
  readonly #owner: string;
  /** The place of the newest snapshot, stored or being stored; -1: none. */
  #saved: number;
  /** After a failure: the first place to try again. */
  #retryAt = 0;

  constructor(store: LedgerStore, owner: string, saved: number) {
    this.#store = store;
    this.#owner = owner;
    this.#saved = saved;
  }

  /** Saves if enough events came after the last snapshot. */
  async saveWhenDue(place: number, snapshot: () => Snapshot): Promise<void> {
    if (place - this.#saved >= snapshotEveryEvents && place >= this.#retryAt) await this.#save(place, snapshot);
  }

  async saveWhenLeaving(place: number, snapshot: () => Snapshot): Promise<void> {
    if (place - this.#saved >= snapshotWhenLeavingEvents) await this.#save(place, snapshot);
  }

  async #save(place: number, snapshot: () => Snapshot): Promise<void> {
    const before = this.#saved;
    this.#saved = place;
    try {
      await this.#store.saveSnapshot(this.#owner, snapshot());
    } catch {
      // Without the snapshot the next replay is only longer.
      if (this.#saved === place) this.#saved = before;
      this.#retryAt = place + snapshotRetryEvents;
    }
  }
}
