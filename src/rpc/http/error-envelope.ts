import type { LedgerError } from '../../domain/errors.ts';

/** The one error body of HTTP (decisions.md, section 2). `details` is left out where there are none. */
export function errorEnvelope(error: LedgerError, requestId: string): string {
  const details = Object.keys(error.details).length === 0 ? undefined : error.details;
  return JSON.stringify({ error: { code: error.code, message: error.message, request_id: requestId, details } });
}
