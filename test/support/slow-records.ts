import { LedgerError } from '../../src/domain/errors.ts';
import { type RecordStore, writeUnknown } from '../../src/store/record-store.ts';
import { recordsWith } from './world.ts';

/**
 * How a put goes: as usual; not at all; after `land` with an unknown outcome; or after `land` with its caller waiting.
 */
type PutFate = 'at once' | 'never' | 'untold' | 'hangs';

/** A node's way to a store that others share, where puts can hang and land late. */
export interface SlowRecords {
  readonly records: RecordStore;
  /** What becomes of the puts to come, in this order; those after them go as ever. */
  next(...fates: PutFate[]): void;
  /** Lets all puts that were held back reach the store. */
  land(): Promise<void>;
  /** Puts that were tried. */
  readonly puts: number;
}

export function slowRecords(inner: RecordStore): SlowRecords {
  const fates: PutFate[] = [];
  const held: (() => Promise<unknown>)[] = [];
  let puts = 0;
  return {
    records: recordsWith(inner, {
      put: (write) => {
        puts++;
        switch (fates.shift() ?? 'at once') {
          case 'at once':
            return inner.put(write);
          case 'never':
            return Promise.reject(new LedgerError('unavailable', 'The store does not answer.'));
          case 'untold':
            held.push(() => inner.put(write));
            return Promise.reject(writeUnknown());
          case 'hangs':
            return new Promise((resolve, reject) => {
              held.push(() => inner.put(write).then(resolve, reject));
            });
        }
      },
    }),
    next: (...given) => void fates.push(...given),
    land: async () => {
      for (const put of held.splice(0)) await put();
    },
    get puts() {
      return puts;
    },
  };
}
