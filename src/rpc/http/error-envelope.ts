import { bodyBounds, boundError } from '../../domain/error-bounds.ts';
import type { LedgerError } from '../../domain/errors.ts';

/** Returns the error body of all HTTP answers, as JSON. `cut` names what was too long: details, and `message`. */
export function errorEnvelope(error: LedgerError, requestId: string): string {
  const { message, details, cut } = boundError(error.message, error.details, bodyBounds);
  return JSON.stringify({
    error: {
      code: error.code,
      message,
      request_id: requestId,
      details: Object.keys(details).length === 0 ? undefined : details,
      cut: cut.length === 0 ? undefined : cut,
    },
  });
}
