import { actorRules } from '../../service/actors/actor-record.ts';
import { apiKeyRules } from '../../service/developers/api-key-record.ts';
import { entityRules, fingerprintRules } from '../../service/entities/entity-record.ts';
import { logRules } from '../../service/log-identity/log-record.ts';
import { organizationRules } from '../../service/organizations/organization-record.ts';
import { anyObject, count, decodeForm, listOf, type RecordForm } from '../../service/records/record-form.ts';
import { blockKind, parseBlock } from '../../service/webhooks/delivery-block.ts';
import { subscriptionRules } from '../../service/webhooks/subscription-record.ts';
import type { StoredRecord } from '../../store/record-store.ts';
import { UnreadableRecord } from '../../store/unreadable-record.ts';
import type { WholeStore } from '../../store/whole-store.ts';
import { FingerprintSet } from './fingerprint-set.ts';

interface RecordScrub {
  readonly ledgers: number;
  readonly records: number;
}

/**
 * Checks every record of a store, the look-ups that lead to records, and the end of each ledger. Calls `found` with a
 * sentence for each damage. Returns how many ledgers and records there are. Needs 26 to 54 bytes of memory a look-up.
 */
export function scrubRecords(store: WholeStore, found: (sentence: string) => void): RecordScrub {
  const count = { ledgers: 0, records: 0 };
  const expected = new FingerprintSet();
  const stored = new FingerprintSet();
  for (const { text } of store.lookups()) stored.add(text);
  for (const record of store.records()) {
    count.records += 1;
    if (record instanceof UnreadableRecord) {
      found(sentenceOf(record));
      continue;
    }
    for (const text of store.lookupsOf(record)) {
      expected.add(text);
      if (!stored.has(text))
        found(`the ${record.kind} record ${JSON.stringify(record.id)} is not found by one of its look-ups`);
    }
    const wrong = wrongRecordForm(record);
    if (wrong !== null) found(`the stored ${record.kind} record ${JSON.stringify(record.id)} is damaged: ${wrong}`);
  }
  for (const { text, id } of store.lookups())
    if (!expected.has(text))
      found(`a look-up leads to the record ${JSON.stringify(id)}, which is gone, damaged or says otherwise`);
  for (const ledger of store.ledgers()) {
    count.ledgers += 1;
    if (ledger instanceof UnreadableRecord) found(sentenceOf(ledger));
  }
  return count;
}

function sentenceOf({ cause, message }: UnreadableRecord): string {
  return cause instanceof Error ? cause.message : message;
}

/** A form that checks these members alone. */
function partOf(kind: string, form: object, id?: string): RecordForm<never> {
  const named = id === undefined ? {} : { id: (value: Readonly<Record<string, unknown>>) => String(value[id]) };
  return { kind, form, ...named } as RecordForm<never>;
}

/** Forms by kind, of the records whose loss or change does most harm. Other records must only be JSON. */
const forms: ReadonlyMap<string, RecordForm<never>> = new Map(
  [
    ...[apiKeyRules, actorRules, entityRules, fingerprintRules, organizationRules, subscriptionRules, logRules],
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
