import { type ErrorCode, errorCodeOf, isErrorCode, LedgerError } from '../domain/errors.ts';

/**
 * What went wrong: the service's own code (decisions.md, section 2), or one of the client's:
 * `connection_lost`: no answer came; a state-changing call may or may not have been carried out.
 * `timeout`: the call's deadline passed; likewise.
 * `invalid_answer`: what answered does not speak this API (a proxy's error page, another version).
 * `integrity_failed`: the service found a failure of integrity in what it read; details hold its issues.
 * `not_sent`: the call was never sent (a client or an append stream that was closed, or a stream that is full).
 */
export type ClientErrorCode =
  | ErrorCode
  | 'connection_lost'
  | 'timeout'
  | 'invalid_answer'
  | 'integrity_failed'
  | 'not_sent';

export interface ErrorFacts {
  /** Plain JSON that helps to mend the call: the field, the limit, what was expected. */
  readonly details?: { readonly [key: string]: unknown };
  /** X-Request-Id of the answer; null where there was none. */
  readonly requestId?: string | null;
  /** Of HTTP, or over gRPC the gRPC status code; null where no answer came. */
  readonly status?: number | null;
  /** What the service asked to wait for before a retry. */
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

/** The one error of the client, the same from REST and gRPC. An aborted call throws its signal's reason instead. */
export class LedgerTrustError extends Error {
  readonly code: ClientErrorCode;
  readonly details: { readonly [key: string]: unknown };
  readonly requestId: string | null;
  readonly status: number | null;
  readonly retryAfterMs: number | null;

  constructor(code: ClientErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'LedgerTrustError';
    this.code = code;
    this.details = facts.details ?? {};
    this.requestId = facts.requestId ?? null;
    this.status = facts.status ?? null;
    this.retryAfterMs = facts.retryAfterMs ?? null;
  }
}

/**
 * The error that the service names in an answer. A code that only a later version of the service knows is `internal` here;
 * `details.unknown_code` then holds it, cut to 64 characters.
 */
export function answeredError(code: string, message: string, facts: ErrorFacts): LedgerTrustError {
  const details = isErrorCode(code)
    ? facts.details
    : { ...facts.details, unknown_code: code.slice(0, unknownCodeMaxChars) };
  return new LedgerTrustError(errorCodeOf(code), message, { ...facts, ...(details === undefined ? {} : { details }) });
}

const unknownCodeMaxChars = 64;

/** `invalid_answer` for one place of an answer. */
export function invalidAnswer(place: string, expected: string, facts: ErrorFacts = {}): LedgerTrustError {
  return new LedgerTrustError('invalid_answer', `${place} is not ${expected}.`, facts);
}

/** What the rules that client and service share refuse is told before it is sent, with the code that the service would have answered. */
export function asClientError(error: unknown): unknown {
  if (!(error instanceof LedgerError)) return error;
  return new LedgerTrustError(error.code, error.message, { details: error.details, cause: error });
}

/** For what a closed client is asked. */
export function clientClosed(): LedgerTrustError {
  return new LedgerTrustError('not_sent', 'The client is closed.');
}
