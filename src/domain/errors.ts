/**
 * What an error says about its call, and whether the call may be sent again:
 * - `refused`: decided in the knowledge of what earlier attempts wrote. Sent again, the call is refused again.
 * - `refused_unchecked`: refused before anything was looked up. Says nothing about earlier attempts.
 * - `not_written`: this attempt wrote nothing. Any call may be sent again.
 * - `in_progress`: an earlier attempt is still running. Any call may be sent again.
 * - `maybe_written`: safe to send again with the same idempotency key, or if the call is a read.
 * - `fault`: the same, but the error may well come again. Clients leave this retry to their users.
 */
export type RetryRule = 'refused' | 'refused_unchecked' | 'not_written' | 'in_progress' | 'maybe_written' | 'fault';

const retryRules = {
  invalid_json: 'refused',
  invalid_argument: 'refused',
  duplicate_key: 'refused',
  unsafe_number: 'refused',
  invalid_string: 'refused',
  too_deep: 'refused',
  reserved_event_type: 'refused',
  reserved_field: 'refused',
  invalid_public_key: 'refused',
  unauthenticated: 'refused_unchecked',
  invalid_api_key: 'refused_unchecked',
  invalid_actor_identity: 'refused_unchecked',
  signature_required: 'refused_unchecked',
  invalid_signature: 'refused_unchecked',
  unknown_signing_key: 'refused_unchecked',
  signing_key_revoked: 'refused_unchecked',
  permission_denied: 'refused',
  access_expired: 'refused',
  environment_mismatch: 'refused',
  not_found: 'refused',
  route_not_found: 'refused',
  method_not_allowed: 'refused',
  ledger_closed: 'refused',
  master_closed: 'refused',
  already_exists: 'refused',
  arl_required: 'refused',
  idempotency_in_progress: 'in_progress',
  key_not_active: 'refused',
  payload_too_large: 'refused',
  unsupported_media_type: 'refused',
  idempotency_key_reused: 'refused',
  rate_limited: 'not_written',
  namespace_reserved: 'refused',
  unavailable: 'not_written',
  overloaded: 'not_written',
  outcome_unknown: 'maybe_written',
  internal: 'fault',
} as const satisfies { readonly [code: string]: RetryRule };
export type ErrorCode = keyof typeof retryRules;

export const errorCodes = Object.keys(retryRules) as readonly ErrorCode[];

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(retryRules, text);
}

export function retryRuleOf(code: ErrorCode): RetryRule {
  return retryRules[code];
}

/** Whether the same call, sent again with its idempotency key, may succeed. It is never written twice. */
export function isRetryable({ code }: LedgerError): boolean {
  const rule = retryRules[code];
  return rule !== 'refused' && rule !== 'refused_unchecked';
}

export function mayBeWritten({ code }: LedgerError): boolean {
  const rule = retryRules[code];
  return rule === 'in_progress' || rule === 'maybe_written' || rule === 'fault';
}

/** A code that only another version knows becomes `internal`. */
export function errorCodeOf(text: string): ErrorCode {
  return isErrorCode(text) ? text : 'internal';
}

type Json = string | number | boolean | null | undefined | readonly Json[] | { readonly [name: string]: Json };

/** What helps the caller: the field, the limit, the expected value. JSON leaves undefined out. */
export type ErrorDetails = { readonly [name: string]: Json };

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

/**
 * Returns a LedgerError as it is, and anything else as `internal` with this message and its cause, which only the log
 * shows.
 */
export function asLedgerError(
  thrown: unknown,
  message = 'Something went wrong inside the service; the request id helps to find out what.',
): LedgerError {
  return thrown instanceof LedgerError ? thrown : new LedgerError('internal', message, {}, thrown);
}

export function invalidField(field: string, expected: string): LedgerError {
  return new LedgerError('invalid_argument', `Field ${field} must be ${expected}.`, { field, expected });
}

/** Refuses the value of a field that is checked by itself. */
export function refusedValue(field: string, value: unknown, expected: string): LedgerError {
  return isAbsent(value)
    ? new LedgerError('invalid_argument', absent(field, expected), { field, expected })
    : invalidField(field, expected);
}

/** In protobuf an absent text equals an empty one. */
export function isAbsent(value: unknown): boolean {
  return value === undefined || value === '';
}

/** The sentence about a field that is absent and must not be. */
export function absent(field: string, expected: string): string {
  return `Field ${field} is missing or empty; expected: ${expected}.`;
}

/** `part` is what stands behind the header's name, such as `[0].role`. It is told as the field. */
export function invalidHeader(header: string, expected: string, part = ''): LedgerError {
  const field = header + part;
  return new LedgerError('invalid_argument', `Header ${field} must be ${expected}.`, { header, field, expected });
}

/** The error of a header's content, with the header's name. */
export function inHeader(header: string, { code, message, details, cause }: LedgerError): LedgerError {
  return new LedgerError(code, `Header ${header}: ${message}`, { header, ...details }, cause);
}

/** The words are the same whether the object does not exist or the caller may not see it. */
export function notFound(what: string, field?: string): LedgerError {
  return new LedgerError('not_found', `There is no such ${what}, or you may not see it.`, field ? { field } : {});
}
