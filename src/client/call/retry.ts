import { isErrorCode, type RetryRule, retryRuleOf } from '../../domain/errors.ts';
import { LedgerTrustError } from '../error.ts';

export interface RetryPolicy {
  /** Milliseconds from the call to its answer or error, all attempts and waits together. */
  readonly timeoutMs: number;
  /** Milliseconds for one attempt. The service itself answers within 11 s. */
  readonly attemptTimeoutMs: number;
  readonly attemptsMax: number;
}

/** The bound of the first random wait. It doubles for each further one, up to BACKOFF_MAX_MS. */
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 3_000;

/** Time and randomness, which tests replace. */
export interface RetryClock {
  /** Milliseconds of a clock that never goes back. */
  monotonicMs(): number;
  /** Rejects if the signal aborts. */
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** At least 0, below 1. */
  random(): number;
}

export const systemRetryClock: RetryClock = Object.freeze({
  monotonicMs: () => performance.now(),
  sleep,
  random: Math.random,
});

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/** The rules of the client's own codes. The others are rules of the service's codes. */
const ownRules: { readonly [code: string]: RetryRule } = {
  connection_lost: 'maybe_written',
  timeout: 'maybe_written',
  invalid_answer: 'fault',
};

function ruleOf({ code }: LedgerTrustError): RetryRule {
  return ownRules[code] ?? (isErrorCode(code) ? retryRuleOf(code) : 'refused');
}

/** Sent twice, `keyed` writes once, by its idempotency key; `unkeyed` may write twice. */
export type CallKind = 'read' | 'keyed' | 'unkeyed';

/** Whether the request may be sent again after this error. `repeatable`: it is a read or has an idempotency key. */
export function mayRetry(error: unknown, repeatable: boolean): error is LedgerTrustError {
  if (!(error instanceof LedgerTrustError)) return false;
  const rule = ruleOf(error);
  if (rule === 'not_written' || rule === 'in_progress') return true;
  return rule === 'maybe_written' && (repeatable || error.details.sent === false);
}

/** Whether the call was not sent because the client or the stream accepts no more. */
export function isNotSent(error: unknown): boolean {
  return error instanceof LedgerTrustError && error.code === 'not_sent';
}

/** Whether a request that ended with this error may have been carried out. */
export function isUncertain(error: unknown): error is LedgerTrustError {
  return error instanceof LedgerTrustError && ruleOf(error) === 'maybe_written' && error.details.sent !== false;
}

/**
 * The error to throw after the last attempt. `earlier` is that of an earlier attempt that may have been carried out. It
 * is returned unless `last` says the same, or was decided with knowledge of what was written.
 */
export function reportedError(last: unknown, earlier: LedgerTrustError | null): unknown {
  if (earlier === null || isUncertain(last)) return last;
  return last instanceof LedgerTrustError && ruleOf(last) === 'refused' ? last : earlier;
}

/** Milliseconds. The service asks for 10 s at most. */
const HINT_MAX_MS = 60_000;

/** For waits that no timeout ends: without a bound the service could silence a client for weeks. */
export function boundedHint(retryAfterMs: number | null): Pick<LedgerTrustError, 'retryAfterMs'> {
  return { retryAfterMs: Math.min(retryAfterMs ?? 0, HINT_MAX_MS) };
}

/** Milliseconds before the next attempt: full jitter, and at least what the service asked for. `attempt`: from 1. */
export function backoffMs(
  attempt: number,
  error: Pick<LedgerTrustError, 'retryAfterMs'> | null,
  random: () => number,
): number {
  const jittered = random() * Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (attempt - 1));
  return Math.max(jittered, error?.retryAfterMs ?? 0);
}

/**
 * Runs attempts until one succeeds, one fails with an error that allows no retry, or attempts or time run out. Throws
 * reportedError, and the reason of an aborted signal at once.
 */
export async function withRetries<T>(
  policy: RetryPolicy,
  clock: RetryClock,
  kind: CallKind,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal, attempt: number) => Promise<T>,
): Promise<T> {
  const endMs = clock.monotonicMs() + policy.timeoutMs;
  let earlier: LedgerTrustError | null = null;
  let last: LedgerTrustError | null = null;
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    const leftMs = endMs - clock.monotonicMs();
    try {
      return await timed(Math.min(leftMs, policy.attemptTimeoutMs), signal, (bounded) => run(bounded, attempt));
    } catch (error) {
      if (signal?.aborted) throw error;
      // The client was closed between two attempts. The earlier error says what became of the call.
      if (isNotSent(error) && last !== null) throw earlier ?? last;
      if (!mayRetry(error, kind !== 'unkeyed')) throw kind === 'read' ? error : reportedError(error, earlier);
      if (isUncertain(error)) earlier = error;
      last = error;
      const waitMs = backoffMs(attempt, error, clock.random);
      if (attempt >= policy.attemptsMax || clock.monotonicMs() + waitMs >= endMs) throw reportedError(error, earlier);
      // An abort ends the wait early; the loop then throws its reason.
      await clock.sleep(waitMs, signal).catch(() => {});
    }
  }
}

/** Runs with a signal that aborts when the caller's signal does, or with `timeout` after `ms` milliseconds. */
async function timed<T>(
  ms: number,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const late = () => new LedgerTrustError('timeout', 'The call took longer than it may: its outcome is not known.');
  const timer = setTimeout(() => controller.abort(late()), Math.max(0, ms));
  const forward = (): void => controller.abort(signal?.reason);
  signal?.addEventListener('abort', forward, { once: true });
  try {
    return await run(controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', forward);
  }
}
