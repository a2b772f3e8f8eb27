import type { Call } from '../calls/call.ts';

/** A record that calls change more than once. */
export interface ChangedRecord {
  /** The calls that changed it last, the newest at the end. */
  readonly changedBy?: readonly string[];
}

/** Calls of one record that are recognized, 40 bytes each. */
const callsKept = 32;

/**
 * Makes a change count once for its call: a retry after a crash would undo what other calls have written since. The
 * record keeps the id of the call, which is the same in every run.
 */
export function changeOnce<T extends ChangedRecord>(
  call: Pick<Call, 'newId'>,
  change: (value: T) => T,
): (value: T) => T {
  const id = call.newId();
  return (value) => {
    const { changedBy = [] } = value;
    if (changedBy.includes(id)) return value;
    return { ...change(value), changedBy: [...changedBy, id].slice(-callsKept) };
  };
}
