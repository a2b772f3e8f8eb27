import { apiKeyRules } from '../service/credentials/api-key-record.ts';
import { actorRules } from '../service/identity/actor-record.ts';
import { entityRules, fingerprintRules } from '../service/parties/entity-record.ts';
import { organizationRules } from '../service/parties/organization-record.ts';
import { decodeRecord, type RecordForm } from '../service/record-form.ts';
import { subscriptionForm } from '../service/webhooks/subscription-record.ts';
import { parseStored } from '../store/damaged-record.ts';
import type { StoredRecord } from '../store/record-store.ts';

const forms: ReadonlyMap<string, RecordForm<never>> = new Map(
  [apiKeyRules, actorRules, entityRules, fingerprintRules, organizationRules, subscriptionForm].map((form) => [
    form.kind,
    form as RecordForm<never>,
  ]),
);

/** Throws DamagedRecord where a record of any kind cannot be read. Of kinds without a form of their own only that they are JSON is known. */
export function checkRecord(record: Pick<StoredRecord, 'kind' | 'id' | 'value'>): void {
  const form = forms.get(record.kind);
  if (form === undefined) parseStored(record.kind, record.id, record.value);
  else decodeRecord(record, form);
}
