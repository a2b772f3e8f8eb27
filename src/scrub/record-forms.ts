import type { StoredRecord } from '../store/record-store.ts';
import { parseMembers } from '../store/unreadable-record.ts';

type Check = (record: StoredRecord) => void;

/** A JSON object whose member `id` names the record itself. */
const named =
  (id: string, list?: string): Check =>
  ({ id: recordId, value }) => {
    const members = parseMembers<Record<string, unknown>>(value, list === undefined ? {} : { [list]: 'list' });
    if (members[id] !== recordId) throw new TypeError(`${id} is not the id of the record`);
  };

/** Records whose loss or change does most, by kind. Of the others no more is asked than that they are JSON. */
const checks: Readonly<Record<string, Check>> = {
  actor: named('actorId', 'keys'),
  api_key: named('hash'),
  organization: named('organizationId'),
  entity: named('actorId'),
  entity_fingerprint: named('fingerprint'),
  webhook_subscription: named('id', 'eventTypes'),
  webhook_delivery: named('id'),
  webhook_deliveries: ({ value }) => void parseMembers<{ deliveries: unknown }>(value, { deliveries: 'list' }),
  webhook_cursor: ({ value }) => void parseMembers<{ next_seq: unknown }>(value, { next_seq: 'count' }),
  authority: ({ value }) => void parseMembers<{ keys: unknown }>(value, { keys: 'list' }),
};

/** In words, what is wrong with a record; null: nothing that can be told from it alone. */
export function wrongRecordForm(record: StoredRecord): string | null {
  const check = Object.hasOwn(checks, record.kind) ? checks[record.kind] : undefined;
  try {
    if (check === undefined) JSON.parse(record.value);
    else check(record);
    return null;
  } catch (error) {
    return `value is no ${record.kind}: ${error instanceof TypeError ? error.message : 'it is no JSON'}`;
  }
}
