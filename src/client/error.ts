import { type ErrorCode, errorCodeOf, isErrorCode, LedgerError } from '../domain/errors.ts';

/**
 * What went wrong: a code of the service, or one of the client's own.
 * - `connection_lost`: no answer arrived. A state-changing call may or may not have been carried out.
 * - `timeout`: the call's deadline passed. A state-changing call may or may not have been carried out.
 * - `invalid_answer`: the answer is not one of this API (a proxy's error page, another version).
 * - `integrity_failed`: the service found integrity failures in what it read; `details.issues` lists them.
 * - `not_sent`: the call was never sent. The client or the append stream is closed, or the append stream is full.
 */
export type ClientErrorCode =
  | ErrorCode
  | 'connection_lost'
  | 'timeout'
  | 'invalid_answer'
  | 'integrity_failed'
  | 'not_sent';

/** What an error says beside its code and message. */
type ErrorFacts = Partial<Omit<LedgerTrustError, keyof Error | 'code'>> & { readonly cause?: unknown };

/** The error of the client, the same over REST and gRPC. An aborted call throws its signal's reason instead. */
export class LedgerTrustError extends Error {
  readonly code: ClientErrorCode;
  /** Plain JSON that helps to correct the call: the field, the limit, what was expected. */
  readonly details: { readonly [key: string]: unknown };
  /** Names of details that the service shortened or left out because they are too long, and `message`. */
  readonly cut: readonly string[];
  /** X-Request-Id of the answer. null if there was none. */
  readonly requestId: string | null;
  /** The HTTP status of the answer. null over gRPC, and if no answer came. `code` is the same over both transports. */
  readonly status: number | null;
  /** The gRPC status code of the answer. null over REST, and if no answer came. */
  readonly grpcStatus: number | null;
  /** Milliseconds that the service asked to wait before a retry. null if it did not ask. */
  readonly retryAfterMs: number | null;
  /**
   * The kept note of a log and a newer verified one, if the service answered no proof that they agree. Keep both: an
   * outage ends, and a service that has signed two histories never shows a proof. Else empty.
   */
  readonly notes: readonly string[];

  constructor(code: ClientErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'LedgerTrustError';
    this.code = code;
    this.details = facts.details ?? {};
    this.cut = facts.cut ?? [];
    this.requestId = facts.requestId ?? null;
    this.status = facts.status ?? null;
    this.grpcStatus = facts.grpcStatus ?? null;
    this.retryAfterMs = facts.retryAfterMs ?? null;
    this.notes = facts.notes ?? [];
  }
}

/**
 * The error that the service names in an answer. A code that this version does not know becomes `internal`;
 * `details.unknown_code` then holds it, cut to 64 characters.
 */
export function answeredError(code: string, message: string, facts: ErrorFacts): LedgerTrustError {
  if (isErrorCode(code)) return new LedgerTrustError(code, message, facts);
  const details = { ...facts.details, unknown_code: code.slice(0, unknownCodeMaxChars) };
  return new LedgerTrustError(errorCodeOf(code), message, { ...facts, details });
}

const unknownCodeMaxChars = 64;

/** An `invalid_answer` error: the value at `field` is not what is `expected`. Both are in `details`, too. */
export function invalidAnswer(field: string, expected: string, cause?: unknown): LedgerTrustError {
  return new LedgerTrustError('invalid_answer', `${field} is not ${expected}.`, {
    details: { field, expected },
    cause,
  });
}

/** Runs `decode`. Adds the facts of the answer to a LedgerTrustError that it throws. */
export function decoding<T>(facts: ErrorFacts, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof LedgerTrustError)) throw error;
    const { code, message, details, cause } = error;
    throw new LedgerTrustError(code, message, { details, cause, ...facts });
  }
}

/** The names in a `cut`, separated by commas. */
export function cutNames(text: string | undefined): string[] {
  return text ? text.split(',') : [];
}

/**
 * Client and service share rules for requests. Turns a LedgerError of these rules into a LedgerTrustError with the code
 * that the service would have answered. Returns any other error as it is.
 */
export function asClientError(error: unknown): unknown {
  if (!(error instanceof LedgerError)) return error;
  return new LedgerTrustError(error.code, error.message, { details: error.details, cause: error });
}

/** The connection of a stream ended, or brought nothing for too long. */
export function connectionEnded(): LedgerTrustError {
  return new LedgerTrustError('connection_lost', 'The connection of the stream was lost.');
}

export function clientClosed(): LedgerTrustError {
  return new LedgerTrustError('not_sent', 'The client is closed.');
}
