import { LedgerError } from '../../domain/errors.ts';
import type { Call, Caller } from './call.ts';

/** Throws `unauthenticated` if there is no caller. The pipeline does so before, where a credential is needed. */
export function callerOf(call: Pick<Call, 'caller'>): Caller {
  if (call.caller === null)
    throw new LedgerError('unauthenticated', 'Send an API key: Authorization: Bearer <API_KEY>.', {
      header: 'Authorization',
    });
  return call.caller;
}

/**
 * Throws `signature_required` for an unsigned call of an entity that must sign. It comes before any look-up, so that
 * identity headers that name somebody else's entity reveal nothing.
 */
export function demandEntitySignature(call: Pick<Call, 'caller' | 'signature'>): void {
  const { caller, signature } = call;
  if (caller?.mustSign && (signature === null || signature.signature === null)) throw entitySignatureRequired();
}

export function entitySignatureRequired(): LedgerError {
  return new LedgerError(
    'signature_required',
    'This call must be signed: enrol a key for the entity, then send X-Signing-Key-ID and X-Actor-Sig.',
    { header: 'X-Actor-Sig' },
  );
}
