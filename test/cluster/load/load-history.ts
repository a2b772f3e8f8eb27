import { LedgerTrustError } from '../../../src/client/index.ts';
import type { ErrorCode } from '../../../src/domain/errors.ts';
import type { LedgerEvent } from '../../../src/domain/event.ts';
import { type Attempt, HistoryBook, type Told, type ToldEvent } from '../../support/history/history.ts';

/** What an answer was: of an append all of the event is told; of other calls only that they were done, and perhaps to what. */
export type Answered = Told | { readonly kind: 'done'; readonly masterId: string | null };

export type LoadAttempt = Omit<Attempt, 'told'> & {
  readonly told: Answered;
  /** On the monotonic clock. */
  readonly beganMs: number;
  readonly endedMs: number;
  /** The error's own words, for whoever looks into a violation. */
  readonly words: string | null;
};

/** When an append was first acknowledged, on the monotonic clock. */
export interface Acknowledgement {
  readonly atMs: number;
  /** Since it was first sent. */
  readonly tookMs: number;
}

/** A call that was sent again and again and never got a certain answer. */
export interface FailedCall {
  readonly name: string;
  readonly begunMs: number;
  readonly endedMs: number;
  readonly last: string;
}

/** Everything that a load saw. */
export class LoadHistory extends HistoryBook {
  readonly calls: LoadAttempt[] = [];
  readonly acknowledgements: Acknowledgement[] = [];
  readonly failed: FailedCall[] = [];
  /** What no caller should ever be told. */
  readonly broken: string[] = [];
}

const nothingWritten: ReadonlySet<string> = new Set([
  'unavailable',
  'overloaded',
  'rate_limited',
  'idempotency_in_progress',
]);
const unclear: ReadonlySet<string> = new Set(['outcome_unknown', 'internal', 'timeout', 'connection_lost']);
const neverRight: ReadonlySet<string> = new Set([
  'internal',
  'invalid_answer',
  'integrity_failed',
  'idempotency_key_reused',
]);

/** What an error tells its caller about the call. */
export function answeredBy(error: unknown, history: LoadHistory): Answered {
  if (!(error instanceof LedgerTrustError)) throw error;
  const { code, details } = error;
  if (neverRight.has(code)) history.broken.push(`${code}: ${error.message} (request ${error.requestId})`);
  const neverSent = code === 'not_sent' || (code === 'connection_lost' && details.sent === false);
  if (neverSent || nothingWritten.has(code)) return { kind: 'not_written', code: 'unavailable' };
  if (unclear.has(code)) return { kind: 'unknown', code: 'disconnected' };
  return { kind: 'refused', code: code as ErrorCode };
}

/**
 * The attempts as the checker takes them: for calls whose answer names no event, the event that stands under the name of their
 * command, or one that stands nowhere.
 */
export function attemptsWithEvents(
  calls: readonly LoadAttempt[],
  logs: ReadonlyMap<string, readonly LedgerEvent[]>,
): Attempt[] {
  const byMark = new Map<string, LedgerEvent>();
  for (const log of logs.values()) for (const event of log) for (const { id } of event.commands) byMark.set(id, event);
  return calls.map((call) => {
    const { told } = call;
    if (told.kind !== 'done') return { ...call, told };
    const found = byMark.get(call.command.marks[0]?.id ?? '');
    const isIt = found !== undefined && (told.masterId === null || found.master?.id === told.masterId);
    const event: ToldEvent = isIt
      ? found
      : { id: 'nowhere', ledgerId: call.command.ledgerId, seq: -1, hash: '', master: null };
    return { ...call, told: { kind: 'written', outcome: { event } } };
  });
}
