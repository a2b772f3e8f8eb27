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
