import { LedgerError } from '../../domain/errors.ts';
import type { Call, Caller } from './call.ts';

/**
 * Returns the caller. Throws `unauthenticated` if there is none; the pipeline refuses these calls before, on all
 * methods that need a credential.
 */
export function callerOf(call: Call): Caller {
  if (call.caller === null)
    throw new LedgerError('unauthenticated', 'Send an API key: Authorization: Bearer <API_KEY>.');
  return call.caller;
}

/**
 * Refuses an unsigned call of an entity that must sign. For these entities the signature is the credential: the call is
 * refused before anything is looked up, so that identity headers that name somebody else's entity reveal nothing.
 * Throws `signature_required`.
 */
export function demandEntitySignature(call: Pick<Call, 'caller' | 'signature'>): void {
  const { caller, signature } = call;
  if (caller?.mustSign && (signature === null || signature.signature === null)) throw entitySignatureRequired();
}

export function entitySignatureRequired(): LedgerError {
  return new LedgerError(
    'signature_required',
    'This call must be signed: enrol a key for the entity, then send X-Signing-Key-ID and X-Actor-Sig.',
  );
}
