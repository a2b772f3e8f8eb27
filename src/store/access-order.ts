import { uuidV7Time } from '../domain/values/uuid.ts';
import type { AccessEvent } from './access-log.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Checks the events of an append to an access log. Throws RangeError unless their ids are UUIDv7 and ascend. */
export function checkAccessOrder(events: readonly AccessEvent[]): void {
  let last = '';
  for (const { id } of events) {
    if (id <= last) throw new RangeError(`Access events come in the order of their ids: ${id} stands behind ${last}`);
    if (!UUID_V7.test(id)) throw new RangeError(`No id of an access event: ${id}`);
    last = id;
  }
}

/**
 * Returns when the call of an access event was answered, in milliseconds since 1970. Throws RangeError if the id is
 * invalid.
 */
export function accessTime(id: string): number {
  const time = uuidV7Time(id);
  if (time === null) throw new RangeError(`No id of an access event: ${id}`);
  return time;
}
