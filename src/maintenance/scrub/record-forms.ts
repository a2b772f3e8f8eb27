import { actorRules } from '../../service/actors/actor-record.ts';
import { apiKeyRules } from '../../service/developers/api-key-record.ts';
import { entityRules, fingerprintRules } from '../../service/entities/entity-record.ts';
import { organizationRules } from '../../service/organizations/organization-record.ts';
import { anyObject, count, decodeForm, listOf, type RecordForm } from '../../service/records/record-form.ts';
import { blockKind, parseBlock } from '../../service/webhooks/delivery-block.ts';
import { subscriptionForm } from '../../service/webhooks/subscription-record.ts';
import type { StoredRecord } from '../../store/record-store.ts';

/** A form that checks these members alone. */
function partOf(kind: string, form: object, id?: string): RecordForm<never> {
  const named = id === undefined ? {} : { id: (value: Readonly<Record<string, unknown>>) => String(value[id]) };
  return { kind, form, ...named } as RecordForm<never>;
}

/** The forms of the records whose loss or change does most harm, by kind. Other records must only be JSON. */
const forms: ReadonlyMap<string, RecordForm<never>> = new Map(
  [
    ...[apiKeyRules, actorRules, entityRules, fingerprintRules, organizationRules, subscriptionForm],
    partOf('webhook_delivery', {}, 'id'),
    partOf('webhook_cursor', { next_seq: count }),
    partOf('authority', { keys: listOf(anyObject) }),
  ].map((form) => [form.kind, form as RecordForm<never>]),
);

/** Says in words what is wrong with a record. Returns null if nothing can be seen in the record alone. */
export function wrongRecordForm(record: Pick<StoredRecord, 'kind' | 'id' | 'value'>): string | null {
  const form = forms.get(record.kind);
  try {
    if (record.kind === blockKind) parseBlock(record);
    else if (form === undefined) JSON.parse(record.value);
    else decodeForm(record, form);
    return null;
  } catch (error) {
    return `value is no ${record.kind}: ${error instanceof TypeError ? error.message : 'it is no JSON'}`;
  }
}
