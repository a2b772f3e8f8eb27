import { KeyedMutex } from '../../store/keyed-mutex.ts';

/** Some seconds of work if the store takes 30 changes of a record a second. Each holds its call in memory. */
export const changesWaitingByDefault = 64;

/**
 * Runs one change of a record at a time, so that the changes of a node never refuse each other, and likewise one
 * creation of those that an actor may only have so many of. `waitingMax`: how many others may wait for it.
 */
export function changeMutex(waitingMax: number = changesWaitingByDefault): KeyedMutex {
  return new KeyedMutex({ max: waitingMax, bound: 'CHANGES_WAITING' });
}
