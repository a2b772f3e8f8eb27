import { LedgerError } from '../../domain/errors.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { decodeStored, parseMembers } from '../../store/unreadable-record.ts';
import type { EntityRequest } from '../calls/call.ts';
import { putPrerequisite } from './prerequisite-record.ts';

const KIND = 'entity_request';

/**
 * Marks a signed request as used, so that it changes state once, on all nodes together. `claimId` is the idempotency
 * claim of the call; null if there is none. A retry under the same claim passes, because the claim already prevents a
 * second execution. Throws `invalid_signature` if the request was used before.
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
    // A signature with an old timestamp is refused anyway. The timestamp may be one skew in the future, so twice the
    // skew would do; the third is a margin.
    expiresAt: nowMs + 3 * limits.entityRequestSkewMs,
  });
  if (put.ok) return;
  const used =
    put.current === null
      ? null
      : decodeStored(put.current, (value) => parseMembers<{ claim: string | null }>(value, { claim: 'text or null' }));
  if (used !== null && used.claim !== null && used.claim === claimId) return;
  throw new LedgerError(
    'invalid_signature',
    'This signed request was used before: sign a new one with a new X-Timestamp.',
    {
      header: 'X-Actor-Sig',
    },
  );
}
