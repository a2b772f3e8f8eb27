import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import type { PushedAnswers } from '../../../../src/service/calls/pushed-answers.ts';
import { bearer, goodKey, ledgerId, listeningNodeForTests, masterId } from '../../../support/listening-node.ts';
import { type LiveEvents, liveEvents } from '../../../support/live-events.ts';
import { openSocket } from '../../../support/raw-http.ts';

const followPath = `/v1/ledgers/${ledgerId}/events/follow`;
const masterPath = `/v1/traceledger/master/${masterId}/events/follow`;
const head = { seq: 7n, hash: 'ab' };
const caughtUp = { message: { case: 'caughtUp', value: { head } } };
const heartbeat = {
  message: { case: 'heartbeat', value: { head, sentAt: '2026-01-01T00:00:00.000Z' } },
  resumeAfter: 7n,
};

interface FollowRequest {
  readonly afterSeq?: bigint;
  readonly afterMasterSeq?: bigint;
}

type Messages = (call: Call, request: FollowRequest) => AsyncGenerator<object>;

/** What the handler of the next streams does. */
let messages: Messages;
const handler = async (request: FollowRequest, call: Call): Promise<PushedAnswers<object>> => ({
  async sendTo(send) {
    for await (const message of messages(call, request)) {
      if (call.aborted) return;
      await send(message);
    }
  },
  stop() {},
});
const node = await listeningNodeForTests({
  grpc: false,
  corsOrigins: ['https://app.example.com'],
  handlers: { 'LedgerService.FollowLedgerEvents': handler, 'MasterService.FollowMasterEvents': handler },
});
afterEach(async () => {
  await expect.poll(() => node.pipeline.running.size).toBe(0);
  await expect.poll(() => node.memory.heldBytes()).toBe(0);
});

const open = (path = followPath, headers: Record<string, string> = {}): Promise<LiveEvents> =>
  liveEvents(node.base, path, { ...bearer, ...headers });
const aborted = ({ signal }: Call): Promise<unknown> => (signal.aborted ? Promise.resolve() : once(signal, 'abort'));

describe('a live stream', () => {
  test('has headers against proxies that store, change or hold back what passes', async () => {
    messages = async function* () {
      yield caughtUp;
    };
    await using stream = await open(followPath, { origin: 'https://app.example.com' });
    expect(Object.fromEntries(stream.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.any(String),
      'access-control-allow-origin': 'https://app.example.com',
    });
    expect(stream.headers.has('content-length')).toBe(false);
  });

  test('names each message and its place, and has a comment as keep-alive before a heartbeat', async () => {
    messages = async function* () {
      yield caughtUp;
      yield heartbeat;
    };
    await using stream = await open();
    await stream.ended();
    expect(stream.raw().split('\n\n')).toEqual([
      'retry: 2000\n: the stream has begun',
      'event: caught_up\ndata: {"head":{"seq":7,"master_seq":null,"hash":"ab"}}',
      ': keep-alive\nid: 7\nevent: heartbeat\n' +
        'data: {"head":{"seq":7,"master_seq":null,"hash":"ab"},"sent_at":"2026-01-01T00:00:00.000Z","checkpoint":null}',
      '',
    ]);
  });

  test('without any message is not stored by anybody', async () => {
    messages = async function* () {};
    await using stream = await open();
    await stream.ended();
    expect([stream.status, stream.headers.get('cache-control'), stream.raw()]).toEqual([204, 'no-store', '']);
    expect(stream.headers.get('x-request-id')).toEqual(expect.any(String));
  });

  test('that fails before its first message is answered as any call is', async () => {
    messages = async function* () {
      yield* [];
      throw new LedgerError('unavailable', 'not now', { retry_after_ms: 700 });
    };
    const response = await fetch(node.base + followPath, { headers: { ...bearer, accept: 'text/event-stream' } });
    expect([response.status, response.headers.get('content-type')]).toEqual([503, 'application/json; charset=utf-8']);
    expect(await response.json()).toMatchObject({ error: { code: 'unavailable', details: { retry_after_ms: 700 } } });
  });

  test.each([
    ['with a hint when to come back', { retry_after_ms: 700 }, 'retry: 700\n'],
    ['without a hint', {}, ''],
  ])('that fails later %s ends with the error as an event', async (_, details, retry) => {
    messages = async function* () {
      yield heartbeat;
      throw new LedgerError('unavailable', 'no more', details);
    };
    await using stream = await open();
    const request_id = stream.headers.get('x-request-id');
    expect((await stream.ended()).at(-1)?.data).toMatchObject({ error: { code: 'unavailable', request_id } });
    expect(stream.status).toBe(200);
    expect(stream.raw()).toMatch(new RegExp(`\\n\\n${retry}event: error\\ndata: \\{"error":[^\\n]+\\n\\n$`));
  });

  /** Opens a stream whose caller leaves behind the messages that it sends. Returns the levels of what is logged then. */
  async function left(sent: readonly object[], after: () => void): Promise<string[]> {
    const begun = Promise.withResolvers<void>();
    let hasEnded = false;
    messages = async function* (call) {
      try {
        yield* sent;
        begun.resolve();
        await aborted(call);
        after();
        yield heartbeat;
      } finally {
        hasEnded = true;
      }
    };
    const lines = node.lines.length;
    const leave = new AbortController();
    const asked = fetch(node.base + followPath, { headers: bearer, signal: leave.signal }).catch(() => null);
    await begun.promise;
    if (sent.length > 0) await asked;
    leave.abort();
    await asked;
    await expect.poll(() => hasEnded).toBe(true);
    await expect.poll(() => node.lines.length).toBeGreaterThan(lines);
    return node.lines.slice(lines).map((line) => (JSON.parse(line) as { level: string }).level);
  }

  test.each([
    ['before its first message', []],
    ['behind a message', [caughtUp]],
  ])('ends without an error when its caller leaves %s', async (_, sent) => {
    expect(await left(sent, () => {})).toEqual(['info']);
  });

  test.each([
    ['before its first message', []],
    ['behind a message', [caughtUp]],
  ])('writes nothing more if it fails after its caller has left %s', async (_, sent) => {
    const fails = () => {
      throw new LedgerError('unavailable', 'the read was ended');
    };
    expect(await left(sent, fails)).toEqual(['info']);
    // An error of a response without a listener would end the process.
    await new Promise(setImmediate);
  });
});

describe('a caller of a live stream that takes nothing', () => {
  const lumpBytes = 64 * 1024;
  /** What the process holds for a reader, beside one event. */
  const inFlightMaxBytes = 256 * 1024;
  const lump = { message: { case: 'heartbeat', value: { head, sentAt: 'x'.repeat(lumpBytes) } } };

  const lumpsMax = 2_000;

  /** Opens a long stream whose caller takes nothing, and waits until nothing more is made for it. */
  async function stalled() {
    let made = 0;
    let call: Call | null = null;
    messages = async function* (own) {
      call = own;
      // Without a bound the node would make them until its memory is full, if it did not wait for its caller.
      for (; made < lumpsMax; made += 1) yield lump;
    };
    const socket: Socket = openSocket(node.http.port);
    socket.pause();
    socket.write(`GET ${followPath} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${goodKey}\r\n\r\n`);
    let before = -1;
    await expect
      .poll(
        () => {
          const isFull = made > 0 && made === before;
          before = made;
          return isFull;
        },
        { interval: 200, timeout: 5_000 },
      )
      .toBe(true);
    return { socket, made: () => made, call: () => call };
  }

  test('gets no more made than what is on its way, and all of it later', async () => {
    const { socket, made } = await stalled();
    const before = made();
    // The kernels between hold most of it.
    expect(before * lumpBytes).toBeLessThan(16 * 1024 * 1024);
    expect(node.memory.heldBytes('answer')).toBeLessThanOrEqual(inFlightMaxBytes + lumpBytes);
    socket.resume();
    await expect.poll(made, { timeout: 10_000 }).toBe(lumpsMax);
    socket.destroy();
  });

  test('loses its connection soon behind an error', async () => {
    const { socket, call } = await stalled();
    expect(node.memory.heldBytes('answer')).toBeGreaterThan(0);
    call()?.endWith(new LedgerError('unavailable', 'no more'));
    await expect.poll(() => node.memory.heldBytes('answer'), { timeout: 3_000 }).toBe(0);
    socket.destroy();
  });
});

describe('Last-Event-ID', () => {
  /** What the handler is asked for; null if the call is refused. */
  async function askedFor(path: string, id: string): Promise<FollowRequest | null> {
    let asked: FollowRequest | null = null;
    messages = async function* (_, request) {
      yield* [];
      asked = request;
    };
    const response = await fetch(node.base + path, { headers: { ...bearer, 'last-event-id': id } });
    if (response.status === 204) return asked;
    const { error } = (await response.json()) as { error: object };
    expect(error).toMatchObject({ code: 'invalid_argument', details: { header: 'Last-Event-ID' } });
    return null;
  }

  test('is the place behind which a ledger or a master is followed', async () => {
    expect(await askedFor(followPath, '12')).toMatchObject({ afterSeq: 12n });
    expect(await askedFor(masterPath, '12')).toMatchObject({ afterMasterSeq: 12n });
    expect(await askedFor(followPath, '-1')).toMatchObject({ afterSeq: -1n });
    expect(await askedFor(followPath, '0')).toMatchObject({ afterSeq: 0n });
    expect(await askedFor(followPath, String(Number.MAX_SAFE_INTEGER))).toMatchObject({ afterSeq: 2n ** 53n - 1n });
  });

  test('leaves the field of the query in force when it is empty', async () => {
    expect(await askedFor(`${followPath}?after_seq=3`, '')).toMatchObject({ afterSeq: 3n });
  });

  test.each(['-2', '-0', '01', '+1', '1.0', '1e3', '0x1', '1, 2', '1'.repeat(17)])(
    '%s is refused, for it is no id of a stream',
    async (id) => {
      expect(await askedFor(`${followPath}?after_seq=3`, id)).toBeNull();
    },
  );
});
