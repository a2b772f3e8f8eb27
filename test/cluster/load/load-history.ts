import { LedgerTrustError } from '../../../src/client/index.ts';
import type { ErrorCode } from '../../../src/domain/errors.ts';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { type AnsweredEvent, type Attempt, type AttemptResult, HistoryBook } from '../../support/history/history.ts';

/** What an answer was: of an append all of the event is told; of other calls only that they were done, and perhaps to what. */
export type Answered = AttemptResult | { readonly kind: 'done'; readonly masterId: string | null };

export type LoadAttempt = Omit<Attempt, 'result'> & {
  readonly result: Answered;
  /** On the monotonic clock. */
  readonly beganMs: number;
  readonly endedMs: number;
  /** When it was sent, in milliseconds since 1970: the clock of all nodes too, which run on one machine. */
  readonly sentAtMs: number;
  /** No node was asked: nobody listened where it was to be sent. */
  readonly unsent: boolean;
  /** The error's own words, to look into a violation. */
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
  /** What came of each attempt of the load, in words; of a client that tries again by itself, its last one. */
  readonly attempts: readonly string[];
}

/** Everything that a load saw. */
export class LoadHistory extends HistoryBook {
  readonly calls: LoadAttempt[] = [];
  readonly acknowledgements: Acknowledgement[] = [];
  readonly failed: FailedCall[] = [];
  /** What no caller should ever be told. */
  readonly broken: string[] = [];
  #outages = 0;
  #storeBackMs = Number.NEGATIVE_INFINITY;

  /** Meanwhile nothing can be written anywhere. */
  async withoutStore<T>(work: () => Promise<T>): Promise<T> {
    this.#outages += 1;
    try {
      return await work();
    } finally {
      this.#outages -= 1;
      this.#storeBackMs = performance.now();
    }
  }

  /** Whether a call that is not certain yet had its time, all of it since the last outage of the store. */
  isInVain(begunMs: number): boolean {
    return this.#outages === 0 && performance.now() - Math.max(begunMs, this.#storeBackMs) > callMaxMs;
  }

  /** Notes a call that is given up. */
  noteFailed(name: string, begunMs: number): void {
    const attempts = this.calls
      .filter((call) => call.name === name)
      .map((call) => `${(call.endedMs - call.beganMs).toFixed(0)} ms, ${call.node}: ${call.words ?? call.result.kind}`);
    this.failed.push({ name, begunMs, endedMs: performance.now(), attempts });
  }

  /** Notes an error if it is one that no caller should ever be told. */
  noteBroken(error: unknown): void {
    if (!(error instanceof LedgerTrustError) || !neverRight.has(error.code)) return;
    this.broken.push(`${error.code}: ${error.message} (request ${error.requestId})`);
  }
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

/** From the first attempt to the last: what the client of the project takes by default. */
const callMaxMs = 30_000;

/** What an error tells its caller about the call. */
export function answeredBy(error: unknown): Answered {
  if (!(error instanceof LedgerTrustError)) throw error;
  const { code } = error;
  if (isUnsent(error) || nothingWritten.has(code)) return { kind: 'not_written', code: 'unavailable' };
  if (unclear.has(code)) return { kind: 'unknown', code: 'disconnected' };
  return { kind: 'refused', code: code as ErrorCode };
}

function isUnsent(error: unknown): boolean {
  if (!(error instanceof LedgerTrustError)) return false;
  const { code, details } = error;
  return code === 'not_sent' || (code === 'connection_lost' && details.sent === false);
}

/** Whether a caller need not ask again. */
export function isCertain(result: Answered): boolean {
  return result.kind !== 'unknown' && result.kind !== 'not_written';
}

/** Carries an attempt out and notes it, word for word as its caller was told. */
export async function noted(
  history: LoadHistory,
  { name, command }: { readonly name: string; readonly command: Attempt['command'] },
  node: { readonly id: string },
  attempt: () => Promise<Answered>,
): Promise<Answered> {
  const [begun, beganMs, sentAtMs] = [history.tick(), performance.now(), Date.now()];
  let result: Answered;
  let words: string | null = null;
  let unsent = false;
  try {
    result = await attempt();
  } catch (error) {
    words = String(error);
    unsent = isUnsent(error);
    history.noteBroken(error);
    result = answeredBy(error);
  }
  const [ended, endedMs] = [history.tick(), performance.now()];
  history.calls.push({ name, command, node: node.id, begun, ended, result, beganMs, endedMs, sentAtMs, unsent, words });
  return result;
}

/** Events by the names of the commands that they came from. */
function eventsByKey(logs: ReadonlyMap<string, readonly LedgerEvent[]>): Map<string, LedgerEvent> {
  const byKey = new Map<string, LedgerEvent>();
  for (const log of logs.values()) for (const event of log) for (const { id } of event.commands) byKey.set(id, event);
  return byKey;
}

/** Times are whole milliseconds, and a turn may have looked at the clock just before it took a command. */
const clockSlackMs = 10;

/**
 * Commands of which a caller was told that an attempt wrote nothing, and whose event stands from before any attempt
 * that may have written it was sent: one of those that "wrote nothing" did.
 */
export function deniedWrites(
  calls: readonly LoadAttempt[],
  logs: ReadonlyMap<string, readonly LedgerEvent[]>,
): string[] {
  const byKey = eventsByKey(logs);
  const found: string[] = [];
  for (const [name, attempts] of Map.groupBy(calls, (call) => call.name)) {
    const event = byKey.get(attempts[0]?.command.commandKeys[0]?.id ?? '');
    const able = attempts.filter(({ result }) => result.kind !== 'not_written').map(({ sentAtMs }) => sentAtMs);
    if (event === undefined || able.length === 0) continue;
    const earlyMs = Math.min(...able) - Date.parse(event.createdAt);
    if (earlyMs > clockSlackMs)
      found.push(
        `denied: ${name} stands at seq ${event.seq} from ${earlyMs} ms before any attempt that may have written`,
      );
  }
  return found;
}

/**
 * The attempts as the checker takes them: for calls whose answer names no event, the event that stands under the name
 * of their command, or one that stands nowhere.
 */
export function attemptsWithEvents(
  calls: readonly LoadAttempt[],
  logs: ReadonlyMap<string, readonly LedgerEvent[]>,
): Attempt[] {
  const byKey = eventsByKey(logs);
  return calls.map((call) => {
    const { result } = call;
    if (result.kind !== 'done') return { ...call, result };
    const found = byKey.get(call.command.commandKeys[0]?.id ?? '');
    const isIt = found !== undefined && (result.masterId === null || found.master?.id === result.masterId);
    const event: AnsweredEvent = isIt
      ? found
      : { id: 'nowhere', ledgerId: call.command.ledgerId, seq: -1, hash: '', master: null };
    return { ...call, result: { kind: 'written', outcome: { event } } };
  });
}
