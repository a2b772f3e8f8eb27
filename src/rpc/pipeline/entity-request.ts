import { LedgerError } from '../../domain/errors.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { parseRfc3339 } from '../../domain/values/time.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Caller, CallSignature } from '../../service/calls/call.ts';
import type { Credentials, EntityRequest } from '../../service/developers/credentials.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { decodeStored, parseMembers } from '../../store/unreadable-record.ts';
import { putPrerequisite } from './prerequisite-record.ts';

const KIND = 'entity_request';

/**
 * Checks that an entity signed this request (ENTITY_REQUEST, see docs/api.md). A signature is required in production
 * mode, and if the entity has or ever had a key. A signature that is not required is checked too.
 *
 * Returns what was signed; null if nothing was. Throws `signature_required` or `invalid_signature`, and the errors of
 * the key check.
 */
export async function checkEntityRequest(
  credentials: Credentials,
  caller: Caller,
  signature: CallSignature | null,
  timestamp: string | undefined,
  signed: () => Omit<EntityRequest, 'timestamp'>,
  nowMs: number,
): Promise<EntityRequest | null> {
  if (signature === null || signature.signature === null) {
    if (!caller.mustSign) return null;
    throw required(
      'X-Actor-Sig',
      'This entity must sign its requests: send X-Actor-Sig over ENTITY_REQUEST, and X-Timestamp.',
    );
  }
  if (timestamp === undefined) throw required('X-Timestamp', 'A signed entity request must carry X-Timestamp.');
  const time = parseRfc3339(timestamp);
  if (time === null || Math.abs(time - nowMs) > limits.entityRequestSkewMs) {
    throw new LedgerError(
      'invalid_signature',
      'X-Timestamp must be the present time in RFC 3339, at most 300 seconds off.',
      {
        header: 'X-Timestamp',
        server_time: new Date(nowMs).toISOString(),
      },
    );
  }
  const request: EntityRequest = { ...signed(), timestamp };
  await credentials.verifyEntityRequest(caller.actorId, signature.keyId, signature.signature, request);
  return request;
}

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

function required(header: string, message: string): LedgerError {
  return new LedgerError('signature_required', message, { header });
}
