/** The closed set of error codes that clients see. */
export const errorCodes = [
  'invalid_json',
  'invalid_argument',
  'duplicate_key',
  'unsafe_number',
  'invalid_string',
  'too_deep',
  'reserved_event_type',
  'reserved_field',
  'invalid_public_key',
  'unauthenticated',
  'invalid_api_key',
  'invalid_actor_identity',
  'signature_required',
  'invalid_signature',
  'unknown_signing_key',
  'signing_key_revoked',
  'permission_denied',
  'access_expired',
  'environment_mismatch',
  'not_found',
  'route_not_found',
  'method_not_allowed',
  'ledger_closed',
  'master_closed',
  'already_exists',
  'arl_required',
  'idempotency_in_progress',
  'key_not_active',
  'payload_too_large',
  'unsupported_media_type',
  'idempotency_key_reused',
  'rate_limited',
  'namespace_reserved',
  'unavailable',
  'overloaded',
  'outcome_unknown',
  'internal',
] as const;
export type ErrorCode = (typeof errorCodes)[number];

const knownCodes: ReadonlySet<string> = new Set(errorCodes);

export function isErrorCode(text: string): text is ErrorCode {
  return knownCodes.has(text);
}

/** The error code that a text from another process names. A code that only another version knows becomes `internal`. */
export function errorCodeOf(text: string): ErrorCode {
  return isErrorCode(text) ? text : 'internal';
}

/** Plain JSON that helps the caller to correct the call: the field, the limit, the expected value. */
export type ErrorDetails = { readonly [key: string]: unknown };

/**
 * The only error that crosses layers. `message` is a sentence that the caller can act on; it never names a host, a
 * query or a secret. `cause` is for the log alone.
 */
export class LedgerError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'LedgerError';
    this.code = code;
    this.details = details;
  }
}

/** The `invalid_argument` error for one field. It says what the field must be. */
export function invalidField(field: string, expected: string): LedgerError {
  return new LedgerError('invalid_argument', `Field ${field} must be ${expected}.`, { field, expected });
}

/** The `not_found` error. The words are the same whether the object does not exist or the caller may not see it. */
export function notFound(what: string, field?: string): LedgerError {
  return new LedgerError('not_found', `There is no such ${what}, or you may not see it.`, field ? { field } : {});
}
