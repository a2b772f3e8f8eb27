import { describe, expect, test } from 'vitest';
import { LedgerTrustError, type StreamedEvent } from '../../src/client/index.ts';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import { SeededRandom } from '../simulation/random.ts';
import { LoadCalls } from './load/calls.ts';
import { runLane } from './load/lane.ts';
import { answeredBy, deniedWrites, type LoadAttempt, LoadHistory } from './load/load-history.ts';
import type { LoadWorld } from './load/load-world.ts';
import type { LoadParty } from './load/parties.ts';
import type { NodeUnderTest } from './rig/node-under-test.ts';

const master = { id: 'master', injected: {} };
const ledger = { id: 'ledger', masters: [{ id: 'closed', injected: {} }, master] };
const nodes = [{ id: 'node-1' }, { id: 'node-2' }] as unknown as NodeUnderTest[];

/** A party whose streams note their events, one list a stream. `outcome` returns the error of an event, or null. */
function fakeParty(outcome: (stream: number, place: number) => LedgerTrustError | null) {
  const streams: StreamedEvent[][] = [];
  const answer = { eventId: 'e', ledgerId: 'ledger', seq: 1, hash: 'h', masterSeq: 1, traceledgerMasterUuid: 'master' };
  const appendStream = () => {
    const events: StreamedEvent[] = [];
    const number = streams.push(events) - 1;
    let failed: LedgerTrustError | null = null;
    return {
      ready: async () => {},
      async append(event: StreamedEvent) {
        const place = events.push(event) - 1;
        const error = outcome(number, place);
        if (error !== null && error.code !== 'ledger_closed') failed ??= error;
        if (error ?? failed) throw error ?? failed;
        return answer;
      },
      [Symbol.asyncDispose]: async () => {},
    };
  };
  const party = { actorId: 'a', at: () => ({ appendStream }) } as unknown as LoadParty;
  return { party, streams };
}

async function lane(party: LoadParty, events: number) {
  const history = new LoadHistory();
  const begun: Promise<void>[] = [];
  let left = events;
  await runLane({
    calls: new LoadCalls({ supplier: party } as unknown as LoadWorld),
    history,
    random: new SeededRandom(1),
    ledger,
    party,
    nodes,
    restMaxMs: 1,
    isRunning: () => left-- > 0,
    begun: (ended) => void begun.push(ended),
  });
  await Promise.all(begun);
  return history;
}

const keysOf = (events: readonly StreamedEvent[] = []) => events.map(({ idempotencyKey }) => idempotencyKey);
const kindsOf = (history: LoadHistory, name: string) =>
  history.calls.filter((call) => call.name === name).map(({ result }) => result.kind);

describe('a lane of the load', () => {
  test('retries failed events first and in order, under the same keys', async () => {
    const { party, streams } = fakeParty((stream, place) =>
      stream === 0 && place === 2 ? new LedgerTrustError('unavailable', 'not now') : null,
    );
    const history = await lane(party, 6);
    expect(streams.length).toBe(2);
    // No event followed the third one, which failed.
    expect(streams[0]?.length).toBe(3);
    expect(keysOf(streams[1])[0]).toBe(keysOf(streams[0])[2]);
    expect(history.acknowledgements.length).toBe(new Set(streams.flatMap(keysOf)).size);
    expect(kindsOf(history, 'append 3')).toEqual(['not_written', 'written']);
    expect(history.failed).toEqual([]);
  });

  test('continues after a refused event', async () => {
    const { party, streams } = fakeParty((_, place) =>
      place === 1 ? new LedgerTrustError('ledger_closed', 'closed') : null,
    );
    const history = await lane(party, 4);
    expect(streams.length).toBe(1);
    expect(kindsOf(history, 'append 2')).toEqual(['refused']);
    expect(kindsOf(history, 'append 3')).toEqual(['written']);
  });
});

describe('the answer to a caller', () => {
  test.each([
    ['unavailable', {}, 'not_written'],
    ['overloaded', {}, 'not_written'],
    ['not_sent', {}, 'not_written'],
    ['connection_lost', { sent: false }, 'not_written'],
    ['connection_lost', { sent: true }, 'unknown'],
    ['connection_lost', {}, 'unknown'],
    ['timeout', {}, 'unknown'],
    ['outcome_unknown', {}, 'unknown'],
    ['master_closed', {}, 'refused'],
  ] as const)('by %s with %o is: %s', (code, details, kind) => {
    expect(answeredBy(new LedgerTrustError(code, 'words', { details })).kind).toBe(kind);
  });
});

describe('a denied write', () => {
  const second = 1_000;
  const at = Date.parse('2026-11-21T00:00:00.000Z');
  const command = { ledgerId: 'ledger', commandKeys: [{ id: 'mark' }] };
  const event = { seq: 7, createdAt: new Date(at + 5 * second).toISOString(), commands: [{ id: 'mark' }] };
  const logs = new Map([['ledger', [event as unknown as LedgerEvent]]]);
  const attempts = (...result: [kind: string, sentAfterMs: number][]) =>
    result.map(
      ([kind, afterMs]) =>
        ({ name: 'append 1', command, result: { kind }, sentAtMs: at + afterMs }) as unknown as LoadAttempt,
    );

  test('is found if the event is in the log and no attempt may have written it', () => {
    expect(deniedWrites(attempts(['not_written', 4 * second], ['written', 6 * second]), logs)).toEqual([
      'denied: append 1 stands at seq 7 from 1000 ms before any attempt that may have written',
    ]);
    expect(deniedWrites(attempts(['not_written', 4 * second], ['unknown', 6 * second]), logs)).toHaveLength(1);
  });

  test('is not found if an uncertain attempt or the last one may have written the event', () => {
    expect(deniedWrites(attempts(['unknown', 4 * second], ['written', 6 * second]), logs)).toEqual([]);
    expect(deniedWrites(attempts(['not_written', 3 * second], ['written', 5 * second]), logs)).toEqual([]);
  });

  test('is left to the checker if no attempt may have written it', () => {
    expect(deniedWrites(attempts(['not_written', 4 * second]), logs)).toEqual([]);
  });
});
