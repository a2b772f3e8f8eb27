import type { LedgerStore, Snapshot } from '../../store/ledger-store.ts';
import { snapshotEveryEvents, snapshotRetryEvents, snapshotWhenLeavingEvents } from '../bounds.ts';
import type { SaveQueue } from './save-queue.ts';

export interface SavingParts {
  readonly store: LedgerStore;
  readonly saves: SaveQueue;
}

/**
 * Decides when the state of a ledger or master is saved. A place counts its own events: seq, or master_seq. A save that
 * fails does not reject, also if the state is too large to be made a text.
 */
export class SnapshotSaving {
  readonly #parts: SavingParts;
  readonly #owner: string;
  /** The place of the newest snapshot; -1: none. */
  #stored: number;
  /** The same, or the place of a newer one that is being saved. */
  #saved: number;
  /** After a failure: the first place to try again. */
  #retryAt = 0;

  constructor(parts: SavingParts, owner: string, saved: number) {
    this.#parts = parts;
    this.#owner = owner;
    this.#stored = saved;
    this.#saved = saved;
  }

  /** Saves if enough events came after the last snapshot. */
  async saveWhenDue(place: number, snapshot: () => Snapshot): Promise<void> {
    if (place - this.#saved >= snapshotEveryEvents && place >= this.#retryAt) await this.#save(place, snapshot);
  }

  /** Begins no save at or after `beginBefore`, ms since 1970. */
  async saveWhenLeaving(place: number, snapshot: () => Snapshot, beginBefore?: number): Promise<void> {
    if (place - this.#saved >= snapshotWhenLeavingEvents) await this.#save(place, snapshot, beginBefore);
  }

  async #save(place: number, snapshot: () => Snapshot, beginBefore = Number.POSITIVE_INFINITY): Promise<void> {
    const { store, saves } = this.#parts;
    this.#saved = place;
    try {
      const storeIt = (made: Snapshot) => store.saveSnapshot(this.#owner, made);
      await saves.run(this.#owner, { snapshot, store: storeIt, beginBefore });
      this.#stored = Math.max(this.#stored, place);
      this.#saved = Math.max(this.#saved, place);
    } catch {
      // Without the snapshot the next replay is only longer.
      if (this.#saved === place) this.#saved = this.#stored;
      this.#retryAt = place + snapshotRetryEvents;
    }
  }
}
