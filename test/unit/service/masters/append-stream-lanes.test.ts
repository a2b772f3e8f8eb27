import { expect, test } from 'vitest';
import type { CommandOutcome } from '../../../../src/actors/inbox/outcome.ts';
import { LedgerError, notFound } from '../../../../src/domain/errors.ts';
import type { Lane } from '../../../../src/domain/ledger/command.ts';
import { uuidV7 } from '../../../../src/domain/values/uuid.ts';
import type { AppendEventsRequest } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import type { LedgerNaming } from '../../../../src/service/audit/ledger-naming.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import type { PreparedCommand } from '../../../../src/service/idempotency/submit-once.ts';
import { EventAppender } from '../../../../src/service/masters/append-event.ts';
import { appendStream } from '../../../../src/service/masters/append-stream.ts';
import { StreamsMemory } from '../../../../src/service/masters/stream-memory.ts';
import { heldBytes } from '../../../support/held-bytes.ts';

/** The service behind a stream. By default no master exists. */
interface Behind {
  ledgerOf?(masterId: string): string | null;
  findLedger?(masterId: string): Promise<string | null>;
  prepare?(request: AppendEventsRequest): Promise<PreparedCommand>;
}

const call = {
  requestId: 'request',
  newId: () => 'stream',
  caller: { actorId: 'actor', mustSign: false },
  signal: new AbortController().signal,
  admitEvent: () => null,
  recordNamed: () => undefined,
  eventRefused: () => {},
  eventFailed: () => {},
} as unknown as Call;
const naming = { master: () => undefined } as unknown as LedgerNaming;

function answersOf(
  behind: Behind,
  events: AsyncIterable<AppendEventsRequest> | Iterable<AppendEventsRequest>,
  as = call,
  now = Date.now,
  memory = new MemoryBudget(1024 * 1024 * 1024),
) {
  const { ledgerOf = () => null, findLedger = async () => null } = behind;
  const prepare = behind.prepare ?? (() => Promise.reject(notFound('master')));
  const appender = { ledgerOf, findLedger, prepare: (_: Call, request: AppendEventsRequest) => prepare(request) };
  async function* requests() {
    yield* events;
  }
  return appendStream(appender as unknown as EventAppender, naming, new StreamsMemory(memory), now)(requests(), as);
}

function* masters(count: number): Iterable<string> {
  for (let n = 0; n < count; n += 1) yield uuidV7(n, new Uint8Array(10));
}

function event(index: number, uuid: string, more: object = {}): AppendEventsRequest {
  return { clientIndex: BigInt(index), uuid, eventType: 'NOTED', payload: '{}', ...more } as AppendEventsRequest;
}

function* eventsOf(uuids: Iterable<string>): Iterable<AppendEventsRequest> {
  let index = 0;
  for (const uuid of uuids) yield event(index++, uuid);
}

/** `ok`, or the code of the error with the index to resume from. */
async function codes(answers: ReturnType<typeof answersOf>, seen: string[] = []): Promise<string[]> {
  for await (const { outcome } of answers) {
    const { case: kind, value } = outcome;
    seen.push(
      kind === 'appended' ? 'ok' : [value.code, value.resumeFrom].filter((part) => part !== undefined).join(' '),
    );
  }
  return seen;
}

const outcome = { event: { seq: 0, master: null }, replayed: false } as unknown as CommandOutcome;
function checked(submit: (lane: Lane | null) => Promise<CommandOutcome>): PreparedCommand {
  return { kind: 'checked', submit };
}
const written = async () => checked(async () => outcome);
const unavailable = async () => {
  throw new LedgerError('unavailable', 'The store cannot be reached.');
};

test.each<[string, (n: number) => string, number]>([
  ['20,000 masters that are not there', (n) => uuidV7(n, new Uint8Array(10)), 20_000],
  ['100 names of a megabyte each that are no ids', (n) => Buffer.alloc(1024 * 1024, `${n}.`).toString('latin1'), 100],
])('a stream holds nothing of %s once their events are answered', async (_, name, count) => {
  const growthMiB: number[] = [];
  async function* events() {
    const before = await heldBytes();
    for (let n = 0; n < count; n += 1) yield event(n, name(n));
    // The last ones are open still.
    await new Promise((resolve) => setTimeout(resolve, 50));
    growthMiB.push(((await heldBytes()) - before) / 1024 / 1024);
  }
  const answers = await codes(answersOf({}, events()));
  expect(answers).toHaveLength(count);
  expect(new Set(answers)).toEqual(new Set(['not_found']));
  expect(Math.max(...growthMiB)).toBeLessThan(6);
});

test('a name that is no UUID is not looked up in the store', async () => {
  const looked: string[] = [];
  const reading = { masterFacts: async (id: string) => void looked.push(id) };
  const parts = [null, reading, null] as unknown as ConstructorParameters<typeof EventAppender>;
  const appender = new EventAppender(...parts);
  for (const name of ['x', '', 'A'.repeat(1_000), '00000000-0000-7000-8000-00000000000A'])
    expect(await appender.findLedger(name)).toBe(null);
  expect(looked).toEqual([]);
});

test.each(['uuid', 'eventType', 'payload', 'signingKeyId', 'actorSig', 'idempotencyKey', 'deliveryChain'])(
  'events that are long by their %s are not taken beyond 8 MiB while they are open',
  async (field) => {
    let taken = 0;
    function* events() {
      for (; taken < 100; taken += 1) yield event(taken, 'x', { [field]: 'y'.repeat(1024 * 1024) });
    }
    const never = new Promise<never>(() => {});
    void answersOf({ prepare: () => never }, events())
      [Symbol.asyncIterator]()
      .next();
    for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate);
    expect(taken).toBe(8 - 1);
  },
);

test('a stream takes no more events while the access records of its ledgers find no room', async () => {
  let open = () => {};
  let taken = 0;
  const recordNamed = () => (taken === 10 ? new Promise<void>((resolve) => (open = resolve)) : undefined);
  function* events() {
    for (; taken < 20; ) yield event(taken++, 'x');
  }
  const seen: string[] = [];
  const all = codes(answersOf({}, events(), { ...call, recordNamed } as Call), seen);
  await expect.poll(() => seen.length).toBe(10);
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  expect([taken, seen.length]).toEqual([10, 10]);
  open();
  expect(await all).toHaveLength(20);
});

test('a stream takes more events while outcomes are timely, and fewer while they are late or must be retried', async () => {
  let nowMs = 0;
  const held: PromiseWithResolvers<CommandOutcome>[] = [];
  const prepare = async () =>
    checked(() => {
      held.push(Promise.withResolvers<CommandOutcome>());
      return (held.at(-1) as PromiseWithResolvers<CommandOutcome>).promise;
    });
  // Each of a ledger of its own: none waits behind one that failed.
  const behind = { prepare, ledgerOf: (id: string) => id };
  void codes(answersOf(behind, eventsOf(masters(100_000)), call, () => nowMs));
  /** Settles all open events, and returns how many are open afterwards. */
  const settle = async (settleOne: (one: PromiseWithResolvers<CommandOutcome>) => void): Promise<number> => {
    for (const one of held.splice(0)) settleOne(one);
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
    return held.length;
  };
  const inTime = () => settle(({ resolve }) => resolve(outcome));
  expect(await settle(() => {})).toBe(64);
  expect(await inTime()).toBeGreaterThan(70);
  for (let round = 0; round < 40; round += 1) await inTime();
  expect(held).toHaveLength(512);
  nowMs += 2_001;
  expect(await inTime()).toBe(256);
  const overloaded = new LedgerError('overloaded', 'Too much is waiting.');
  expect(await settle(({ reject }) => reject(overloaded))).toBe(128);
});

test('an event whose master is created while it is prepared is refused as not found', async () => {
  const sent: (Lane | null)[] = [];
  const prepare = async () =>
    checked(async (lane) => {
      sent.push(lane);
      return outcome;
    });
  expect(await codes(answersOf({ prepare }, eventsOf(masters(3))))).toEqual(['not_found', 'not_found', 'not_found']);
  expect(sent).toEqual([]);
});

test('a failed look-up of one absent master does not fail the events of others', async () => {
  const [first] = masters(1);
  const prepare = ({ uuid }: AppendEventsRequest) =>
    uuid === first ? unavailable() : Promise.reject(notFound('master'));
  expect(await codes(answersOf({ prepare }, eventsOf(masters(3))))).toEqual([
    'unavailable 0',
    'not_found',
    'not_found',
  ]);
});

test('a stream takes events of more ledgers than it has lanes, and keeps the lane that failed', async () => {
  const many = [...masters(3_000)];
  const [first = ''] = many;
  let failing = true;
  const prepare = ({ uuid }: AppendEventsRequest) => {
    if (uuid !== first || !failing) return written();
    failing = false;
    return unavailable();
  };
  const answers = await codes(answersOf({ ledgerOf: (id) => id, prepare }, eventsOf([...many, first])));
  expect([answers[0], answers.at(-1)]).toEqual(['unavailable 0', 'unavailable 0']);
  expect(answers.filter((code) => code === 'ok')).toHaveLength(2_999);
});

test('the next event of an idle ledger follows no event, and that of a busy ledger follows the open one', async () => {
  const many = [...masters(2_000)];
  const [busy = '', idle = ''] = many;
  const lanes = new Map<string, Lane[]>();
  let end = () => {};
  const held = new Promise<void>((resolve) => {
    end = resolve;
  });
  const prepare = async ({ uuid }: AppendEventsRequest) =>
    checked(async (lane) => {
      if (lane !== null) lanes.set(uuid, [...(lanes.get(uuid) ?? []), lane]);
      if (uuid === busy && lanes.get(uuid)?.length === 1) await held;
      if (lanes.get(busy)?.length === 2) end();
      return outcome;
    });
  const answers = await codes(answersOf({ ledgerOf: (id) => id, prepare }, eventsOf([...many, idle, busy])));
  expect(answers).toHaveLength(2_002);
  expect(new Set(answers)).toEqual(new Set(['ok']));
  expect(lanes.get(idle)?.map(({ previous }) => previous)).toEqual([null, null]);
  const [before, behind] = lanes.get(busy) ?? [];
  expect(behind?.previous).toBe(before?.index);
  expect(behind?.id).toBe(before?.id);
});

test('a stream ends when more ledgers have failed than it has lanes, after the events that it took are answered', async () => {
  const seen: string[] = [];
  const stream = answersOf({ ledgerOf: (id) => id, prepare: unavailable }, eventsOf(masters(2_000)));
  await expect(codes(stream, seen)).rejects.toMatchObject({ code: 'unavailable' });
  expect(seen).toEqual(Array.from({ length: 1_024 }, (_, n) => `unavailable ${n}`));
});

test('a replayed event takes no place in its lane: the next event follows the last one that was sent', async () => {
  const [master = ''] = masters(1);
  const sent: Lane[] = [];
  const first = { ...outcome, replayed: true };
  const prepare = async ({ clientIndex }: AppendEventsRequest): Promise<PreparedCommand> => {
    if (clientIndex === 1n) return { kind: 'replayed', first };
    return checked(async (lane) => {
      if (lane !== null) sent.push(lane);
      // Open until the next one is sent.
      while (sent.length < 2) await new Promise(setImmediate);
      return outcome;
    });
  };
  const answers = await codes(answersOf({ ledgerOf: (id) => id, prepare }, eventsOf([master, master, master])));
  expect(answers).toEqual(['ok', 'ok', 'ok']);
  expect(sent.map(({ previous }) => previous)).toEqual([null, sent[0]?.index]);
});

test.each(['internal', 'unavailable', 'outcome_unknown'] as const)(
  'no event is sent after one that failed as %s',
  async (code) => {
    const [master = ''] = masters(1);
    const sent: (Lane | null)[] = [];
    const prepare = async () =>
      checked((lane) => {
        sent.push(lane);
        return Promise.reject(new LedgerError(code, 'It failed.'));
      });
    const answers = await codes(answersOf({ ledgerOf: (id) => id, prepare }, eventsOf([master, master])));
    expect(answers).toEqual([`${code} 0`, 'unavailable 0']);
    expect(sent).toHaveLength(1);
  },
);

test('lanes of two streams with the same request id have different ids', async () => {
  const [master = ''] = masters(1);
  const ids: (string | undefined)[] = [];
  let made = 0;
  const prepare = async () =>
    checked(async (lane) => {
      ids.push(lane?.id);
      return outcome;
    });
  const newId = () => `stream ${made++}`;
  for (let stream = 0; stream < 2; stream++)
    await codes(answersOf({ ledgerOf: (id) => id, prepare }, eventsOf([master]), { ...call, newId } as Call));
  expect(ids).toHaveLength(2);
  expect(ids[0]).not.toBe(ids[1]);
});

test('an outcome with long details is cut as in trailers, and names what was cut', async () => {
  const long = { event_type: 'NOTED', expected_canonical_json: '"é'.repeat(60_000) };
  const short = { event_type: 'NOTED', expected_canonical_json: '{"a":1}' };
  const errors = [
    new LedgerError('invalid_signature', 'It does not verify.', long),
    new LedgerError('invalid_signature', 'It does not verify.', short),
    new LedgerError('internal', 'm'.repeat(5_000)),
  ];
  const prepare = ({ clientIndex }: AppendEventsRequest) => Promise.reject(errors[Number(clientIndex)]);
  const refused: { message: string; details: string; cut?: string | undefined }[] = [];
  // Each of a ledger of its own: none waits behind one that failed.
  for await (const { outcome } of answersOf({ prepare, ledgerOf: (id) => id }, eventsOf(masters(3))))
    if (outcome.case === 'error') refused.push(outcome.value);
  const [cut, whole, lengthy] = refused;
  expect(Buffer.byteLength(cut?.details ?? '')).toBeLessThanOrEqual(3 * 1024);
  const details = JSON.parse(cut?.details ?? '{}');
  expect(details.event_type).toBe('NOTED');
  expect(long.expected_canonical_json.startsWith(details.expected_canonical_json.slice(0, -1))).toBe(true);
  expect(details.expected_canonical_json.length).toBeGreaterThan(500);
  expect(cut?.cut).toBe('expected_canonical_json');
  expect(whole).not.toHaveProperty('cut');
  expect(whole?.details).toBe(JSON.stringify(short));
  expect(Buffer.byteLength(lengthy?.message ?? '')).toBeLessThanOrEqual(512);
  expect(lengthy?.cut).toBe('message');
});
