import { uuidV7Time } from '../domain/uuid.ts';
import type { AccessEvent } from './access-log.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** RangeError unless the ids are UUIDv7 and ascend: what an append to an access log may assume. */
export function checkAccessOrder(events: readonly AccessEvent[]): void {
  let last = '';
  for (const { id } of events) {
    if (id <= last) throw new RangeError(`Access events come in the order of their ids: ${id} stands behind ${last}`);
    if (!UUID_V7.test(id)) throw new RangeError(`No id of an access event: ${id}`);
    last = id;
  }
}

/** When the call of an access event was answered, in milliseconds since 1970. RangeError for what is no such id. */
export function accessTime(id: string): number {
  const time = uuidV7Time(id);
  if (time === null) throw new RangeError(`No id of an access event: ${id}`);
  return time;
}
