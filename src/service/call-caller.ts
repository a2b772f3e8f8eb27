import { LedgerError } from '../domain/errors.ts';
import type { Call, Caller } from './call.ts';

/** Who is calling; the pipeline lets nobody through to a method with a credential who has none. */
export function callerOf(call: Call): Caller {
  if (call.caller === null)
    throw new LedgerError('unauthenticated', 'Send an API key: Authorization: Bearer <API_KEY>.');
  return call.caller;
}
