import { bodyBounds, boundError } from '../../domain/error-bounds.ts';
import type { LedgerError } from '../../domain/errors.ts';

/**
 * The one error body of HTTP (decisions.md, section 2). `details` is left out where there are none; `cut` names
 * details, and `message`, that were too long.
 */
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
