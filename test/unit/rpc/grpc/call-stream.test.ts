import { EventEmitter } from 'node:events';
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { ServerInterceptingCallInterface } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { Connections } from '../../../../src/rpc/grpc/connections.ts';
import { CallStream, type RefusedStatus } from '../../../../src/rpc/grpc/worker/call-stream.ts';
import type { GrpcMethod } from '../../../../src/rpc/grpc/worker-messages.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';

const mebibyte = 1024 * 1024;
/** How many calls fill a quarter of the budget of 64 MiB. */
const callsMax = (16 * mebibyte) / limits.grpcCallBytes;

class Session extends EventEmitter {
  readonly socket = { remoteAddress: '192.0.2.7', remotePort: 1 };
  destroyed = false;
  readonly streams = new Set<Stream>();

  destroy(): void {
    this.destroyed = true;
    for (const stream of this.streams) stream.emit('close');
  }
}

class Stream extends EventEmitter {
  readonly session: Session;
  isRead = true;
  readableLength = 0;
  writableFinished = false;
  isClosed = false;

  constructor(session: Session) {
    super();
    this.session = session;
    session.streams.add(this);
  }

  pause(): void {
    this.isRead = false;
  }
  isPaused(): boolean {
    return !this.isRead;
  }
  close(): void {
    this.isClosed = true;
  }
}

const method = (kind: GrpcMethod['kind'], changesState = true): GrpcMethod => {
  return { path: '/a.B/Do', kind, number: 0, changesState };
};
const grpc = { 'content-type': 'application/grpc' };

class Rig {
  readonly memory = new MemoryBudget(64 * mebibyte);
  readonly connections = new Connections(
    { connectionRequestBytes: 2 * mebibyte, connectionAnswerBytes: 4 * mebibyte },
    100,
    this.memory,
    0,
  );
  readonly refusals: string[] = [];
  asked = 0;
  readonly #streams: CallStream[] = [];

  open(
    session: Session,
    served: GrpcMethod | null,
    headers: IncomingHttpHeaders = grpc,
  ): { callStream: CallStream; http: Stream } {
    const http = new Stream(session);
    const parts = {
      connections: this.connections,
      admit: () => {
        this.asked += 1;
      },
      closed: () => {},
    };
    const callStream = new CallStream(parts, http as unknown as ServerHttp2Stream, headers, served);
    http.on('data', (chunk: Buffer) => callStream.arrived(chunk));
    const sendStatus = (status: RefusedStatus) => void this.refusals.push(status.reason);
    callStream.call = { sendStatus } as unknown as ServerInterceptingCallInterface;
    http.isRead = true;
    this.#streams.push(callStream);
    return { callStream, http };
  }

  /** Opens a stream of whose call grpc-js has told. */
  begin(session: Session, headers: IncomingHttpHeaders = grpc): Stream {
    const { callStream, http } = this.open(session, method('bidi_streaming'), headers);
    if (callStream.call !== null) callStream.begin(callStream.call);
    return http;
  }

  pass(ms: number): void {
    this.connections.nowMs += ms;
    for (const stream of this.#streams) stream.look(this.connections.nowMs);
    this.connections.updateBudget();
  }

  held(): number[] {
    return (['request', 'answer', 'stream'] as const).map((kind) => this.memory.heldBytes(kind));
  }
}

/** The beginning of a message that never ends. */
function begun(bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUInt32BE(2 ** 32 - 1, 1);
  return buffer;
}

test('a message that has not ended after 30 s is refused, and after 29 s it is not', () => {
  const rig = new Rig();
  const { http } = rig.open(new Session(), method('unary'));
  http.emit('data', begun(10));
  for (let second = 0; second < 29; second += 1) {
    rig.pass(1_000);
    http.emit('data', Buffer.alloc(1));
  }
  expect(rig.refusals).toEqual([]);
  rig.pass(1_100);
  expect([rig.refusals, rig.asked]).toEqual([['unavailable'], 1]);
});

test('headers without a message are refused after 30 s too, and their caller is checked before', () => {
  const rig = new Rig();
  rig.open(new Session(), method('server_streaming'));
  rig.pass(100);
  expect(rig.asked).toBe(0);
  rig.pass(100);
  expect(rig.asked).toBe(1);
  rig.pass(30_000);
  expect(rig.refusals).toEqual(['unavailable']);
});

test('each message of a stream has its own 30 s, which do not count while the node does not read the stream', () => {
  const rig = new Rig();
  const { http, callStream } = rig.open(new Session(), method('bidi_streaming'));
  const small = Buffer.from([0, 0, 0, 0, 1, 7]);
  for (let second = 0; second < 100; second += 1) {
    http.emit('data', small);
    callStream.handedOn(1);
    rig.pass(1_000);
  }
  http.emit('data', begun(10));
  http.isRead = false;
  rig.pass(100_000);
  http.isRead = true;
  rig.pass(29_000);
  expect(rig.refusals).toEqual([]);
  rig.pass(2_000);
  expect([rig.refusals, rig.asked]).toEqual([['unavailable'], 0]);
});

test('unfinished requests of a connection have a bound: calls beyond are overloaded, and in the end the connection ends', () => {
  const rig = new Rig();
  const session = new Session();
  const fill = () => rig.open(session, method('unary')).http.emit('data', begun(mebibyte));
  fill();
  fill();
  expect(rig.refusals).toEqual([]);
  for (let more = 0; more < 100; more += 1) rig.open(session, method('unary')).http.emit('data', begun(10));
  expect([rig.refusals, session.destroyed]).toEqual([Array(100).fill('overloaded'), false]);
  rig.pass(100);
  expect(rig.held()[0]).toBeGreaterThanOrEqual(2 * mebibyte);
  rig.open(session, method('unary')).http.emit('data', begun(10));
  expect(session.destroyed).toBe(true);
  rig.pass(100);
  expect(rig.held()).toEqual([0, 0, 0]);
});

test('unfinished messages of streams count to that bound too', () => {
  const rig = new Rig();
  const session = new Session();
  const fill = () => rig.open(session, method('bidi_streaming')).http.emit('data', begun(mebibyte));
  fill();
  fill();
  expect(rig.refusals).toEqual([]);
  fill();
  expect(rig.refusals).toEqual(['overloaded']);
});

test('a request of more than 64 KiB asks at once whether its caller is admitted, and only once', () => {
  const rig = new Rig();
  const { http } = rig.open(new Session(), method('unary'));
  http.emit('data', begun(limits.grpcUnadmittedBytes));
  expect(rig.asked).toBe(0);
  http.emit('data', Buffer.alloc(1));
  http.emit('data', Buffer.alloc(1));
  expect([rig.asked, limits.grpcUnadmittedBytes]).toEqual([1, 64 * 1024]);
});

test('a request that was handed on is held no more by the worker', () => {
  const rig = new Rig();
  const { http, callStream } = rig.open(new Session(), method('unary'));
  http.emit('data', begun(1_000));
  rig.pass(10);
  expect(rig.held()[0]).toBeGreaterThanOrEqual(1_000);
  callStream.received();
  rig.pass(60_000);
  // The call itself is held until its stream closes.
  expect([rig.held(), rig.refusals]).toEqual([[limits.grpcCallBytes, 0, 0], []]);
  http.emit('close');
  rig.pass(100);
  expect(rig.held()).toEqual([0, 0, 0]);
});

test('when all connections hold more than a quarter of the budget, one that holds more than its part is refused', () => {
  const rig = new Rig();
  const sessions = Array.from({ length: 8 }, () => new Session());
  const fill = (session: Session, bytes: number) => rig.open(session, method('unary')).http.emit('data', begun(bytes));
  for (const session of sessions) fill(session, 1.9 * mebibyte);
  fill(sessions[3] as Session, 0.05 * mebibyte);
  expect(rig.refusals).toEqual([]);
  // 16 MiB are reached with calls of the fourth, which holds more than an eighth of them.
  for (let call = 0; call < 20; call += 1) fill(sessions[3] as Session, 100);
  expect(new Set(rig.refusals)).toEqual(new Set(['overloaded']));
  expect(sessions.some(({ destroyed }) => destroyed)).toBe(false);
});

test('a connection that holds little is not refused then: the one that holds most ends', () => {
  const rig = new Rig();
  const [small, ...large] = Array.from({ length: 9 }, () => new Session());
  for (const session of large) {
    for (let call = 0; call < 2; call += 1)
      rig.open(session, method('unary')).http.emit('data', begun(0.95 * mebibyte));
  }
  const most = large[3] as Session;
  rig.open(most, method('unary')).http.emit('data', begun(0.02 * mebibyte));
  expect(rig.refusals).toEqual([]);
  for (let call = 0; call < 20; call += 1) rig.open(small as Session, method('unary')).http.emit('data', begun(1_000));
  expect([rig.refusals, most.destroyed, small?.destroyed]).toEqual([[], true, false]);
  expect(large.filter(({ destroyed }) => destroyed)).toHaveLength(1);
});

test('calls count by themselves: too many on one connection are overloaded before any of their bytes arrive', () => {
  const rig = new Rig();
  const session = new Session();
  for (let call = 0; call < callsMax; call += 1) rig.begin(session);
  expect(rig.refusals).toEqual([]);
  rig.begin(session);
  expect([rig.refusals, session.destroyed]).toEqual([['overloaded'], false]);
  rig.begin(new Session());
  expect([rig.refusals.length, session.destroyed]).toEqual([1, true]);
});

test('a connection that keeps opening calls for which there is no room ends', () => {
  const rig = new Rig();
  const session = new Session();
  for (let call = 0; call < callsMax + 100; call += 1) rig.begin(session);
  expect([rig.refusals.length, session.destroyed]).toEqual([100, false]);
  rig.begin(session);
  expect(session.destroyed).toBe(true);
});

test('headers count with their call until it closes, and a call with more than 16 KiB of them is refused', () => {
  const rig = new Rig();
  const begin = (bytes: number) => {
    const http = rig.begin(new Session(), { ...grpc, 'x-long': 'x'.repeat(bytes) });
    rig.pass(100);
    return http;
  };
  const short = begin(500);
  expect(rig.held()[0]).toBe(limits.grpcCallBytes);
  const long = begin(15 * 1024);
  const heldBytes = rig.held()[0] ?? 0;
  expect(heldBytes - 2 * limits.grpcCallBytes).toBeGreaterThan(14 * 1024);
  expect(heldBytes - 2 * limits.grpcCallBytes).toBeLessThan(15 * 1024);
  expect(rig.refusals).toEqual([]);
  const refused = begin(16 * 1024);
  expect(rig.refusals).toEqual(['invalid_argument']);
  for (const http of [short, long, refused]) http.emit('close');
  rig.pass(100);
  expect(rig.held()).toEqual([0, 0, 0]);
});

test('bytes that wait in Node’s buffers while streams are paused count too', () => {
  const rig = new Rig();
  const session = new Session();
  const { http } = rig.open(session, method('bidi_streaming'));
  http.readableLength = 64 * 1024;
  rig.pass(100);
  expect(rig.held()[0]).toBe(64 * 1024 + limits.grpcCallBytes);
  http.readableLength = 17 * mebibyte;
  rig.pass(100);
  expect(session.destroyed).toBe(true);
});

test('an answer of which nothing is taken for 30 s ends its connection; one that is taken slowly does not', () => {
  const rig = new Rig();
  const slow = new Session();
  const { callStream } = rig.open(slow, method('unary'));
  callStream.received();
  expect(callStream.answers(1_000)).toBe(true);
  for (let taken = 0; taken < 5; taken += 1) {
    rig.pass(29_000);
    callStream.taken(100);
  }
  expect(slow.destroyed).toBe(false);
  expect(rig.held()[1]).toBeGreaterThanOrEqual(500);
  rig.pass(30_100);
  expect(slow.destroyed).toBe(true);
  rig.pass(100);
  expect(rig.held()).toEqual([0, 0, 0]);
});

test.each([false, true])(
  'an error whose trailers are not taken ends its connection too (writableFinished: %s)',
  (writableFinished) => {
    const rig = new Rig();
    const session = new Session();
    const { callStream, http } = rig.open(session, method('unary'));
    callStream.answered();
    http.writableFinished = writableFinished;
    rig.pass(29_900);
    expect(session.destroyed).toBe(false);
    rig.pass(200);
    expect(session.destroyed).toBe(true);
  },
);

test('a caller that keeps sending after its answer is cut off after a second', () => {
  const rig = new Rig();
  const { callStream, http } = rig.open(new Session(), method('bidi_streaming'));
  callStream.answered();
  http.writableFinished = true;
  rig.pass(900);
  expect(http.isClosed).toBe(false);
  rig.pass(200);
  expect(http.isClosed).toBe(true);
});

test('untaken answers of a connection have a bound: a read is overloaded, and a call that changed state ends the connection', () => {
  const rig = new Rig();
  const session = new Session();
  const answer = (served: GrpcMethod | null) => {
    const { callStream } = rig.open(session, served);
    callStream.received();
    return callStream.answers(3 * mebibyte);
  };
  expect(answer(method('unary', false))).toBe(true);
  expect(answer(method('unary', false))).toBe(false);
  expect([rig.refusals, session.destroyed]).toEqual([['overloaded'], false]);
  expect(answer(method('unary', true))).toBe(false);
  expect([rig.refusals, session.destroyed]).toEqual([['overloaded'], true]);
});

test('an unknown flag byte, and a compressed message without an encoding, are refused', () => {
  const rig = new Rig();
  for (const flag of [0x80, 1]) rig.open(new Session(), method('unary')).http.emit('data', Buffer.from([flag]));
  rig.open(new Session(), method('unary'), { ...grpc, 'grpc-encoding': 'gzip' }).http.emit('data', Buffer.from([1]));
  expect(rig.refusals).toEqual(['invalid_argument', 'invalid_argument']);
});

test('messages to health and reflection may have 16 KiB', () => {
  const rig = new Rig();
  rig.open(new Session(), null).http.emit('data', begun(16 * 1024));
  expect(rig.refusals).toEqual([]);
  rig.open(new Session(), null).http.emit('data', begun(16 * 1024 + 1));
  expect(rig.refusals).toEqual(['payload_too_large']);
});

test('a connection that opens many streams without a credential ends its own, and not those of others', () => {
  const rig = new Rig();
  const other = rig.open(new Session(), null).http;
  const session = new Session();
  const own = Array.from({ length: 18 }, () => rig.open(session, null).http);
  expect(own.map(({ isClosed }) => isClosed)).toEqual([true, true, ...Array(16).fill(false)]);
  expect(other.isClosed).toBe(false);
});

test('the oldest stream that needs no credential ends for a new one, and no stream of the service does', () => {
  const rig = new Rig();
  const called = rig.open(new Session(), method('unary'));
  const standard = Array.from({ length: 256 }, () => rig.open(new Session(), null).http);
  expect(standard.filter(({ isClosed }) => isClosed)).toEqual([]);
  const next = rig.open(new Session(), null).http;
  expect(standard.map(({ isClosed }) => isClosed)).toEqual([true, ...Array(255).fill(false)]);
  standard[1]?.emit('close');
  rig.open(new Session(), null);
  expect([standard[2]?.isClosed, next.isClosed, called.http.isClosed]).toEqual([false, false, false]);
});

test('half of the refusals of a connection are forgotten each second', () => {
  const rig = new Rig();
  const session = new Session();
  const { callStream } = rig.open(session, method('unary'));
  for (let second = 0; second < 10; second += 1) {
    for (let refused = 0; refused < 40; refused += 1) rig.connections.refused(callStream.connection);
    rig.pass(1_000);
  }
  expect(session.destroyed).toBe(false);
  for (let refused = 0; refused < 101; refused += 1) rig.connections.refused(callStream.connection);
  expect(session.destroyed).toBe(true);
});
