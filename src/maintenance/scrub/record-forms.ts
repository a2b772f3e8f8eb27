import { actorRules } from '../../service/actors/actor-record.ts';
import { authorityRules } from '../../service/authority/authority.ts';
import { apiKeyRules } from '../../service/developers/api-key-record.ts';
import { entityRules, fingerprintRules } from '../../service/entities/entity-record.ts';
import { claimForm } from '../../service/idempotency/run-once.ts';
import { usedRequestForm } from '../../service/idempotency/used-requests.ts';
import { logRules } from '../../service/log-identity/log-record.ts';
import { organizationRules } from '../../service/organizations/organization-record.ts';
import { anyObject, count, decodeForm, type RecordForm } from '../../service/records/record-form.ts';
import { blockKind, parseBlock } from '../../service/webhooks/delivery-block.ts';
import { parseRequested, requestedKind } from '../../service/webhooks/requested-deliveries.ts';
import { subscriptionRules } from '../../service/webhooks/subscription-record.ts';
import type { StoredRecord } from '../../store/record-store.ts';

type Stored = Pick<StoredRecord, 'kind' | 'id' | 'value'>;
/** Throws if the record has not the form of its kind. */
type Check = (record: Stored) => unknown;

/** A form that checks these members alone. */
function partOf(kind: string, form: object): RecordForm<never> {
  return { kind, form } as RecordForm<never>;
}

/** The check of a value that is no object with known members. */
function checkOf(check: (value: unknown) => boolean, what: string): Check {
  return ({ value }) => {
    if (!check(JSON.parse(value))) throw new TypeError(`it is no ${what}`);
  };
}

const hexHash = (value: unknown) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const countsByName = (value: unknown) => anyObject(value) && Object.values(value as object).every(Number.isSafeInteger);

/**
 * Checks by kind, of all kinds that this version stores. They take what any version has stored: later versions have
 * only added members.
 */
const checks: ReadonlyMap<string, Check> = new Map<string, Check>([
  ...[
    ...[apiKeyRules, actorRules, entityRules, fingerprintRules, organizationRules, subscriptionRules],
    ...[authorityRules, logRules],
    ...[claimForm, usedRequestForm],
    partOf('webhook_cursor', { next_seq: count }),
    ...[blockKind, requestedKind].map((kind) => partOf(`${kind}_slot`, {})),
  ].map((form): [string, Check] => [form.kind, (record) => decodeForm(record, form as RecordForm<never>)]),
  [blockKind, parseBlock],
  [requestedKind, parseRequested],
  ['node', checkOf(hexHash, 'fingerprint of a key')],
  ['webhook_start', checkOf(countsByName, 'object of whole numbers')],
  ['webhook_changes', checkOf(count, 'count')],
]);

/**
 * Says in words what is wrong with a record. Returns null if nothing can be seen in the record alone. A record of a
 * kind that a later version has added must only be JSON.
 */
export function wrongRecordForm(record: Stored): string | null {
  const check = checks.get(record.kind) ?? (({ value }: Stored) => JSON.parse(value));
  try {
    check(record);
    return null;
  } catch (error) {
    return `value is no ${record.kind}: ${error instanceof TypeError ? error.message : 'it is no JSON'}`;
  }
}
