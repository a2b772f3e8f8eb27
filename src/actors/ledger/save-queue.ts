import type { Clock } from '../../runtime/clock/clock.ts';
import { EventLoopBudget } from '../../runtime/limits/event-loop-budget.ts';
import type { Snapshot } from '../../store/ledger-store.ts';
import { snapshotCharsAtStoreMax, snapshotFrameChars } from '../bounds.ts';

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
  readonly #budget = new EventLoopBudget();
  #charsAtStore = 0;
  #isBeginning = false;

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
    void this.#beginSome();
    return ended.promise;
  }

  async #beginSome(): Promise<void> {
    if (this.#isBeginning) return;
    this.#isBeginning = true;
    for (const [owner, waiting] of this.#waiting) {
      if (this.#charsAtStore >= snapshotCharsAtStoreMax) break;
      const free = this.#budget.whenFree();
      if (free !== null) await free;
      this.#waiting.delete(owner);
      this.#begin(waiting.save).then(waiting.ended.resolve, waiting.ended.reject);
    }
    this.#isBeginning = false;
  }

  async #begin({ snapshot, store, beginBefore }: Save): Promise<void> {
    if (this.#clock.now() >= beginBefore) throw new Error('the snapshot could not be saved in time');
    this.#budget.use(0, snapshotFrameChars);
    const made = snapshot();
    const chars = snapshotFrameChars + made.state.length;
    this.#budget.use(0, made.state.length);
    this.#charsAtStore += chars;
    try {
      await store(made);
    } finally {
      this.#charsAtStore -= chars;
      void this.#beginSome();
    }
  }
}
