import { setTimeout as delay } from 'node:timers/promises';
import { LedgerTrustError } from './error.ts';

/** How often and how long a call is tried. */
export interface RetryPolicy {
  /** From the call to its answer or error, all attempts and waits together. */
  readonly timeoutMs: number;
  /** One attempt. The service itself answers within 10 s. */
  readonly attemptTimeoutMs: number;
  readonly attemptsMax: number;
}

export const defaultRetryPolicy: RetryPolicy = Object.freeze({
  timeoutMs: 30_000,
  attemptTimeoutMs: 12_000,
  attemptsMax: 5,
});

/** The first wait is at most this, each further one at most twice the one before. */
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 3_000;

/** Time and chance, which tests replace. */
export interface RetryClock {
  /** Milliseconds of a clock that never goes back. */
  monotonicMs(): number;
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** From 0 to 1. */
  random(): number;
}

export const systemRetryClock: RetryClock = Object.freeze({
  monotonicMs: () => performance.now(),
  sleep: (ms: number, signal: AbortSignal | undefined) => delay(ms, undefined, signal === undefined ? {} : { signal }),
  random: Math.random,
});

/** Nothing was written, or nothing twice: may be sent again whatever the call does. */
const harmless: ReadonlySet<string> = new Set(['unavailable', 'overloaded', 'rate_limited', 'idempotency_in_progress']);
/** May have been carried out: sent again only if it is a read or has an idempotency key. */
const uncertain: ReadonlySet<string> = new Set(['outcome_unknown', 'connection_lost', 'timeout']);

/** Refused, or gone wrong, before anybody looked for what an earlier attempt wrote: all of 401, and what is no decision. */
const blind: ReadonlySet<string> = new Set([
  'unauthenticated',
  'invalid_api_key',
  'invalid_actor_identity',
  'signature_required',
  'invalid_signature',
  'unknown_signing_key',
  'signing_key_revoked',
  'internal',
  'invalid_answer',
]);

/** What a call does when it is sent twice: writes nothing, writes once by its idempotency key, or may write twice. */
export type CallKind = 'read' | 'keyed' | 'unkeyed';

/** Whether the same request may be sent again after this error, and may then succeed. */
export function mayRetry(error: unknown, repeatable: boolean): error is LedgerTrustError {
  if (!(error instanceof LedgerTrustError)) return false;
  if (harmless.has(error.code)) return true;
  return uncertain.has(error.code) && (repeatable || error.details.sent === false);
}

/** Whether it was not sent, since the client or the stream does not take it any more. */
export function isNotSent(error: unknown): boolean {
  return error instanceof LedgerTrustError && error.code === 'not_sent';
}

/** Whether what was sent may have been carried out. */
export function isUncertain(error: unknown): error is LedgerTrustError {
  return error instanceof LedgerTrustError && uncertain.has(error.code) && error.details.sent !== false;
}

/** What the sender is told of a last error: that an earlier attempt may have written, unless this one was decided knowing what was written. */
export function toldOf(last: unknown, earlier: LedgerTrustError | null): unknown {
  if (earlier === null || isUncertain(last)) return last;
  const isDecided = last instanceof LedgerTrustError && !harmless.has(last.code) && !uncertain.has(last.code);
  return isDecided && !blind.has(last.code) ? last : earlier;
}

/** Full jitter; what the service asked to wait is waited. `attempt` counts from 1. */
export function backoffMs(attempt: number, error: LedgerTrustError | null, random: () => number): number {
  const jittered = random() * Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (attempt - 1));
  return Math.max(jittered, error?.retryAfterMs ?? 0);
}

/**
 * Runs an attempt until it succeeds, fails for good, or attempts or time run out; then the last error is thrown, or an earlier one after
 * which the call may have been carried out, where the last one says nothing of that. An aborted signal throws its reason at once.
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
      // The client was closed between two attempts: what the call came to, the one before says.
      if (isNotSent(error) && last !== null) throw earlier ?? last;
      if (!mayRetry(error, kind !== 'unkeyed')) throw kind === 'read' ? error : toldOf(error, earlier);
      if (isUncertain(error)) earlier = error;
      last = error;
      const waitMs = backoffMs(attempt, error, clock.random);
      if (attempt >= policy.attemptsMax || clock.monotonicMs() + waitMs >= endMs) throw toldOf(error, earlier);
      // An abort ends the wait early; the loop then throws its reason.
      await clock.sleep(waitMs, signal).catch(() => {});
    }
  }
}

/** Runs with a signal that aborts with the caller's, or with `timeout`. */
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
