import type { Clock } from '../runtime/clock/clock.ts';
import type { RecordStore } from '../store/record-store.ts';

/** The longest time that a background write waits for the commit of an append. */
const waitMaxMs = 20;

interface TideParts {
  readonly clock: Clock;
  /** Whether appends alone could fill the processors. Background writes are delayed only then. */
  isBusy(): boolean;
}

/**
 * Delays background writes until an append commits. If a store syncs its disk for each commit, a background commit
 * between two appends makes the second append wait. A background write that starts right after the commit of an append
 * shares the commit of the next one.
 */
export class Tide {
  readonly #parts: TideParts;
  #waiting: (PromiseWithResolvers<void> & { readonly cancel: () => void }) | null = null;

  constructor(parts: TideParts) {
    this.#parts = parts;
  }

  /** An append was committed. Releases the writes that wait. */
  committed(): void {
    const waiting = this.#waiting;
    if (waiting === null) return;
    this.#waiting = null;
    waiting.cancel();
    waiting.resolve();
  }

  /** Returns the same record store, with its writes delayed while appends are busy. */
  riding(records: RecordStore): RecordStore {
    return {
      get: (kind, id) => records.get(kind, id),
      find: (kind, lookup, page) => records.find(kind, lookup, page),
      sweep: (now, limit) => records.sweep(now, limit),
      put: async (write) => {
        if (this.#parts.isBusy()) await this.#next();
        return records.put(write);
      },
      remove: async (kind, id, version) => {
        if (this.#parts.isBusy()) await this.#next();
        return records.remove(kind, id, version);
      },
    };
  }

  #next(): Promise<void> {
    if (this.#waiting === null) {
      const cancel = this.#parts.clock.after(waitMaxMs, () => this.committed());
      this.#waiting = { ...Promise.withResolvers<void>(), cancel };
    }
    return this.#waiting.promise;
  }
}
