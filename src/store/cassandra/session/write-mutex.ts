import { KeyedMutex } from '../../keyed-mutex.ts';
import { writesMaxByDefault } from './settings.ts';

/** Sends one write of a ledger or a record at a time. `writesMax`: how many others may wait for it. */
export function writeMutex(writesMax: number = writesMaxByDefault): KeyedMutex {
  return new KeyedMutex({ max: writesMax, bound: 'CASSANDRA_WRITES_MAX' });
}
