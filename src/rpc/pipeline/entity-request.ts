import { LedgerError } from '../../domain/errors.ts';
import { parseRfc3339 } from '../../domain/values/time.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Caller, CallSignature, EntityRequest } from '../../service/calls/call.ts';
import type { Credentials } from '../../service/developers/credentials.ts';

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

function required(header: string, message: string): LedgerError {
  return new LedgerError('signature_required', message, { header });
}
