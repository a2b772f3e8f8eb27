import { LedgerError } from '../../domain/errors.ts';
import { parseRfc3339 } from '../../domain/values/time.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Caller, CallSignature } from '../../service/calls/call.ts';
import type { IncomingCall } from '../call/incoming-call.ts';

/**
 * Checks, before the request is read, that an entity signed it as far as its headers say (ENTITY_REQUEST, see
 * docs/signing.md). A signature is required in production mode, and if the entity has or ever had a key. A signature
 * that is not required is checked too.
 *
 * Returns the time that was signed; null if nothing was. Throws `signature_required` or `invalid_signature`.
 */
export function signedTime(
  caller: Caller,
  signature: CallSignature | null,
  incoming: Pick<IncomingCall, 'header'>,
  nowMs: number,
): string | null {
  if (signature === null || signature.signature === null) {
    if (!caller.mustSign) return null;
    const message = 'This entity must sign its requests: send X-Actor-Sig over ENTITY_REQUEST, and X-Timestamp.';
    throw new LedgerError('signature_required', message, { header: 'X-Actor-Sig' });
  }
  const timestamp = incoming.header('x-timestamp');
  if (timestamp === undefined) {
    const message = 'A signed entity request must carry X-Timestamp.';
    throw new LedgerError('signature_required', message, { header: 'X-Timestamp' });
  }
  const time = parseRfc3339(timestamp);
  if (time === null || Math.abs(time - nowMs) > limits.entityRequestSkewMs) {
    const message = 'X-Timestamp must be the present time in RFC 3339, at most 300 seconds off.';
    const details = { header: 'X-Timestamp', server_time: new Date(nowMs).toISOString() };
    throw new LedgerError('invalid_signature', message, details);
  }
  return timestamp;
}
