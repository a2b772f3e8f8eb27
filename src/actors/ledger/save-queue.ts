import type { Clock } from '../../runtime/clock/clock.ts';
import type { Snapshot } from '../../store/ledger-store.ts';
import { snapshotCharsAtStoreMax, snapshotCharsInTurn, snapshotFrameChars } from '../bounds.ts';

interface Save {
  /** Makes the snapshot of the state. */
  readonly snapshot: () => Snapshot;
  readonly store: (snapshot: Snapshot) => Promise<void>;
  /** ms since 1970. */
  readonly beginBefore: number;
}

interface WaitingSave {
  save: Save;
  readonly ended: PromiseWithResolvers<void>;
}

/**
 * The saves of snapshots of one node. To make a state a text and to seal it takes the main thread, so only so many are
 * made in one turn of the event loop, and none begins while many are at the store. The others wait in the order of the
 * calls. What waits is lost if the process ends: snapshots are a cache of the log.
 */
export class SaveQueue {
  readonly #clock: Clock;
  /** By owner: a ledger or master id. */
  readonly #waiting = new Map<string, WaitingSave>();
  #charsInTurn = 0;
  #charsAtStore = 0;
  #endsTurn = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Replaces a save of the same owner that waits; the later one of their two limits holds. Resolves once the snapshot
   * is stored. Rejects if it cannot be made or stored, or if its turn comes at or after `beginBefore`.
   */
  run(owner: string, save: Save): Promise<void> {
    const held = this.#waiting.get(owner);
    if (held !== undefined) {
      held.save = { ...save, beginBefore: Math.max(held.save.beginBefore, save.beginBefore) };
      return held.ended.promise;
    }
    const ended = Promise.withResolvers<void>();
    this.#waiting.set(owner, { save, ended });
    this.#beginSome();
    return ended.promise;
  }

  #beginSome(): void {
    for (const [owner, { save, ended }] of this.#waiting) {
      if (this.#charsInTurn >= snapshotCharsInTurn || this.#charsAtStore >= snapshotCharsAtStoreMax) return;
      this.#waiting.delete(owner);
      this.#begin(save).then(ended.resolve, ended.reject);
    }
  }

  async #begin({ snapshot, store, beginBefore }: Save): Promise<void> {
    if (this.#clock.now() >= beginBefore) throw new Error('the snapshot could not be saved in time');
    this.#use(snapshotFrameChars);
    const made = snapshot();
    const chars = snapshotFrameChars + made.state.length;
    this.#use(made.state.length);
    this.#charsAtStore += chars;
    try {
      await store(made);
    } finally {
      this.#charsAtStore -= chars;
      this.#beginSome();
    }
  }

  #use(chars: number): void {
    this.#charsInTurn += chars;
    if (this.#endsTurn) return;
    this.#endsTurn = true;
    setImmediate(() => {
      this.#endsTurn = false;
      this.#charsInTurn = 0;
      this.#beginSome();
    });
  }
}
