import { LedgerError } from '../../domain/errors.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { EntityRequest } from '../calls/call.ts';
import { decodeRecord, type RecordForm, textOrNull } from '../records/record-form.ts';
import { putPrerequisite } from './prerequisite-record.ts';

const KIND = 'entity_request';
export const usedRequestForm: RecordForm<{ claim: string | null }> = { kind: KIND, form: { claim: textOrNull } };

/**
 * Marks a signed request as used, so that it changes state once. Throws `invalid_signature` if it was used before. A
 * retry under the same claim passes, because the claim prevents a second execution. `claimId`: null if there is none.
 */
export async function useEntityRequest(
  records: RecordStore,
  actorId: string,
  request: EntityRequest,
  claimId: string | null,
  nowMs: number,
): Promise<void> {
  const id = sha256Hex(JSON.stringify([actorId, request.method, request.path, request.bodyHash, request.timestamp]));
  const put = await putPrerequisite(records, {
    kind: KIND,
    id,
    replaces: 'absent',
    value: JSON.stringify({ claim: claimId }),
    lookups: [],
    // Afterwards the timestamp is refused. It may be one skew in the future, so twice the skew would do without margin.
    expiresAt: nowMs + 3 * limits.entityRequestSkewMs,
  });
  if (put.ok) return;
  const usedFor = put.current === null ? null : decodeRecord(put.current, usedRequestForm).claim;
  if (usedFor !== null && usedFor === claimId) return;
  throw new LedgerError(
    'invalid_signature',
    'This signed request was used before: sign a new one with a new X-Timestamp.',
    { header: 'X-Actor-Sig' },
  );
}
