import { LedgerTrustError } from '../../../src/client/index.ts';
import type { ErrorCode } from '../../../src/domain/errors.ts';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { type AnsweredEvent, type Attempt, type AttemptResult, HistoryBook } from '../../support/history/history.ts';

/** The answer to a call. Only the answer to an append names the event. */
export type Answered = AttemptResult | { readonly kind: 'done'; readonly masterId: string | null };

export type LoadAttempt = Omit<Attempt, 'result'> & {
  readonly result: Answered;
  /** On the monotonic clock. */
  readonly beganMs: number;
  readonly endedMs: number;
  /** Milliseconds since 1970, by the clock of the machine, which is also that of the nodes. */
  readonly sentAtMs: number;
  /** Nothing listened at the address. */
  readonly unsent: boolean;
  /** The text of the error. */
  readonly words: string | null;
};

/** When an append was first acknowledged, on the monotonic clock. */
interface Acknowledgement {
  readonly atMs: number;
  /** Since the first attempt began. */
  readonly tookMs: number;
}

/** A call that was given up without a certain answer. */
interface FailedCall {
  readonly name: string;
  readonly begunMs: number;
  readonly endedMs: number;
  /** A description of each attempt. Of a client that retries by itself only the last one. */
  readonly attempts: readonly string[];
}

/** The calls of a load and their answers. */
export class LoadHistory extends HistoryBook {
  readonly calls: LoadAttempt[] = [];
  readonly acknowledgements: Acknowledgement[] = [];
  readonly failed: FailedCall[] = [];
  /** Answers that no caller may ever get. */
  readonly broken: string[] = [];
  #outages = 0;
  #storeBackMs = Number.NEGATIVE_INFINITY;

  /** Runs `work`, during which no node can write. */
  async withoutStore<T>(work: () => Promise<T>): Promise<T> {
    this.#outages += 1;
    try {
      return await work();
    } finally {
      this.#outages -= 1;
      this.#storeBackMs = performance.now();
    }
  }

  /** Whether an uncertain call has had its whole time since the last outage of the store. */
  isInVain(begunMs: number): boolean {
    return this.#outages === 0 && performance.now() - Math.max(begunMs, this.#storeBackMs) > callMaxMs;
  }

  noteFailed(name: string, begunMs: number): void {
    const attempts = this.calls
      .filter((call) => call.name === name)
      .map((call) => `${(call.endedMs - call.beganMs).toFixed(0)} ms, ${call.node}: ${call.words ?? call.result.kind}`);
    this.failed.push({ name, begunMs, endedMs: performance.now(), attempts });
  }

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

/** The default time of the project's client for all attempts of a call. */
const callMaxMs = 30_000;

/** Returns what an error says about the call. Rethrows what is no error of the service or the client. */
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

/** Whether a caller need not repeat the call. */
export function isCertain(result: Answered): boolean {
  return result.kind !== 'unknown' && result.kind !== 'not_written';
}

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

/** Events by the ids of their command keys. */
function eventsByKey(logs: ReadonlyMap<string, readonly LedgerEvent[]>): Map<string, LedgerEvent> {
  const byKey = new Map<string, LedgerEvent>();
  for (const log of logs.values()) for (const event of log) for (const { id } of event.commands) byKey.set(id, event);
  return byKey;
}

/** Times are whole milliseconds, and a batch may read the clock just before it takes a command. */
const clockSlackMs = 10;

/**
 * Returns a violation for each event that is older than any attempt that may have written it. So an attempt wrote it
 * although its caller was told that it wrote nothing.
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
 * Returns the attempts for the checker. An answer without an event gets the event with the command's key, or an event
 * that is in no log.
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
