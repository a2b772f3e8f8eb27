import type { Clock } from '../../actors/clock.ts';
import type { RecordStore } from '../../store/record-store.ts';

/** How long a write waits for the commit of an append at most. */
const waitMaxMs = 20;

export interface TideParts {
  readonly clock: Clock;
  /** Whether appends could fill the processors by themselves. */
  isBusy(): boolean;
}

/**
 * A store that syncs its disk for each commit makes the next append wait for a commit that was begun in between. So while appends are busy,
 * background writes go out at the moment when a commit of theirs has ended and the next one begins: they ride along.
 */
export class Tide {
  readonly #parts: TideParts;
  #waiting: (PromiseWithResolvers<void> & { readonly cancel: () => void }) | null = null;

  constructor(parts: TideParts) {
    this.#parts = parts;
  }

  /** An append was committed. */
  committed(): void {
    const waiting = this.#waiting;
    if (waiting === null) return;
    this.#waiting = null;
    waiting.cancel();
    waiting.resolve();
  }

  /** The same records, whose writes ride along. */
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
