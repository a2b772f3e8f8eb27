import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { fromBinary } from '@bufbuild/protobuf';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { StatusSchema } from '../../../../src/gen/google/rpc/status_pb.ts';
import { type AppendEventsRequest, MasterService } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { attackerOf, type GrpcTarget, untilClosed } from '../../../support/attacks/grpc-connections.ts';
import { floods } from '../../../support/attacks/grpc-floods.ts';
import { run as shakeHands } from '../../../support/attacks/grpc-handshakes.ts';
import { run as reflect } from '../../../support/attacks/grpc-reflection.ts';
import { run as leaveUnfinished } from '../../../support/attacks/grpc-unfinished.ts';
import { run as untaken } from '../../../support/attacks/grpc-untaken.ts';
import { callHeaders, data, endHeaders, frame, frameType, grpcMessage } from '../../../support/attacks/http2-frames.ts';
import { resetFirstStreams, resetStreamsOverTls } from '../../../support/attacks/reset-streams.ts';
import { ownCertificate } from '../../../support/certificate.ts';
import { callGrpc, grpcClient, infoIn } from '../../../support/grpc-client.ts';
import { bearer, listeningNodeForTests, otherKey, startListeningNode } from '../../../support/listening-node.ts';
import { isNightly } from '../../../support/nightly.ts';
import { sampleMost } from '../../../support/raw-http.ts';

// Tests of time bounds have a clock of their own (call-stream.test.ts).

vi.setConfig({ testTimeout: 60_000 });

const mebibyte = 1024 * 1024;
const append = '/svc.v1.MasterService/AppendEvent';
const appends = '/svc.v1.MasterService/AppendEvents';
const history = '/svc.v1.MasterService/ListMasters';
const certificate = ownCertificate();
let taken = 0;
/** What appends throw. */
let thrown: LedgerError | null = null;
const target = (): GrpcTarget => ({ grpc: node.grpcAddress });

const node = await listeningNodeForTests({
  memoryBytes: 128 * mebibyte,
  rates: { append: { perSecond: 100, burst: 150 } },
  handlers: {
    'MasterService.AppendEvent': async () => {
      taken += 1;
      if (thrown !== null) throw thrown;
      return {};
    },
    'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>) {
      for await (const { clientIndex } of requests) yield { clientIndex };
    },
  },
});
/** The same ports with TLS. */
const secure = await listeningNodeForTests({
  tls: certificate,
  handlers: { 'MasterService.AppendEvent': async () => ({}) },
});
beforeEach(() => {
  taken = 0;
  thrown = null;
});

interface Call {
  readonly stream: ClientHttp2Stream;
  /** Headers or trailers with grpc-status. */
  readonly ended: Promise<IncomingHttpHeaders>;
}

function open(session: ClientHttp2Session, path: string, headers: IncomingHttpHeaders = bearer): Call {
  const grpc = { 'content-type': 'application/grpc', te: 'trailers' };
  const stream = session.request({ ':method': 'POST', ':path': path, ...grpc, ...headers });
  stream.on('error', () => {}).resume();
  const ended = new Promise<IncomingHttpHeaders>((resolve) => {
    const look = (found: IncomingHttpHeaders) => found['grpc-status'] !== undefined && resolve(found);
    stream
      .on('response', look)
      .on('trailers', look)
      .on('close', () => resolve({}));
  });
  return { stream, ended };
}

function session(): ClientHttp2Session & Disposable {
  const made = connect(`http://127.0.0.1:${node.grpc.port}`);
  made.on('error', () => {});
  return Object.assign(made, { [Symbol.dispose]: () => made.destroy() });
}

function reasonOf(answered: IncomingHttpHeaders): string | undefined {
  const bytes = Buffer.from(String(answered['grpc-status-details-bin'] ?? ''), 'base64');
  return infoIn(fromBinary(StatusSchema, bytes))?.reason;
}

/** The attacked node answers an honest call, and holds nothing. */
async function expectCalm(attacked = node): Promise<void> {
  const client = grpcClient(attacked.grpcAddress, attacked === secure ? certificate.cert : null);
  const { error } = await callGrpc(client, MasterService.method.appendEvent, { payload: '{}' }, bearer);
  client.close();
  expect(error).toBeNull();
  await expect.poll(() => attacked.memory.heldBytes(), { timeout: 10_000 }).toBe(0);
  await expect.poll(() => attacked.pipeline.running.size, { timeout: 10_000 }).toBe(0);
}

const almost = grpcMessage(Buffer.alloc(mebibyte - 1), 0, mebibyte);

test('a caller without a credential is refused before its message has come', async () => {
  using one = session();
  const calls = [append, appends, history].map((path) => open(one, path, {}));
  for (const { stream } of calls) stream.write(almost.subarray(0, 1_000));
  const answers = await Promise.all(calls.map(({ ended }) => ended));
  expect(answers.map(reasonOf)).toEqual(['unauthenticated', 'unauthenticated', 'unauthenticated']);
  await expectCalm();
});

test('a large message is read only within its caller’s rate', async () => {
  using one = session();
  const calls = Array.from({ length: 300 }, () => open(one, append));
  for (const { stream } of calls) stream.write(almost.subarray(0, 10));
  const first = await Promise.race(calls.map(({ ended }) => ended));
  expect([reasonOf(first), taken]).toEqual(['rate_limited', 0]);
  one.destroy();
  await delay(1_500);
  await expectCalm();
});

test('a message that arrives slowly is answered like any other', async () => {
  using one = session();
  const { stream, ended } = open(one, append);
  const message = grpcMessage(Buffer.alloc(0));
  stream.write(message.subarray(0, 3));
  await expect.poll(() => node.pipeline.running.size, { timeout: 5_000 }).toBe(1);
  stream.write(message.subarray(3));
  await delay(400);
  stream.end();
  expect([(await ended)['grpc-status'], taken]).toEqual(['0', 1]);
  const gone = open(one, append);
  gone.stream.write(message.subarray(0, 3));
  await delay(400);
  gone.stream.close();
  await expectCalm();
});

test('unfinished messages may hold 8 MiB a connection; calls beyond are overloaded, and the error names the setting', async () => {
  using one = session();
  const calls = Array.from({ length: 10 }, () => open(one, append));
  for (const { stream } of calls) stream.write(almost);
  const answered = await Promise.race(calls.map(({ ended }) => ended));
  expect([answered['grpc-status'], reasonOf(answered), taken]).toEqual(['14', 'overloaded', 0]);
  expect(Buffer.from(String(answered['grpc-status-details-bin']), 'base64').toString()).toContain(
    'GRPC_CONNECTION_REQUEST_MIB',
  );
  await expect.poll(() => node.memory.heldBytes('request')).toBeGreaterThan(7 * mebibyte);
  one.destroy();
  await expectCalm();
});

test('compressed messages of a connection are unpacked only within its rate and its bound', async () => {
  using one = session();
  const packed = grpcMessage(gzipSync(Buffer.alloc(mebibyte)), 1);
  const without = Array.from({ length: 50 }, () => open(one, append, { 'grpc-encoding': 'gzip' }));
  for (const { stream } of without) stream.write(packed);
  expect(new Set((await Promise.all(without.map(({ ended }) => ended))).map(reasonOf))).toEqual(
    new Set(['unauthenticated']),
  );
  // A message of 1 MiB counts as 323 calls, which the other tests' key must not owe.
  const headers = { authorization: `Bearer ${otherKey}`, 'grpc-encoding': 'gzip' };
  const calls = Array.from({ length: 50 }, () => open(one, append, headers));
  for (const { stream } of calls) stream.write(packed);
  const first = await Promise.race(calls.map(({ ended }) => ended));
  expect(reasonOf(first)).toBe('overloaded');
  await delay(500);
  expect(node.memory.heldBytes('request')).toBeLessThan(10 * mebibyte);
  one.destroy();
  await expectCalm();
});

test.each([
  ['grpc-timeout', '-1S'],
  ['grpc-timeout', '1'],
  ['grpc-timeout', '123456789S'],
  ['grpc-timeout', '1S1S'],
])('%s: %s is refused', async (name, value) => {
  using one = session();
  const { stream, ended } = open(one, append, { ...bearer, [name]: value });
  stream.end(grpcMessage(Buffer.alloc(0)));
  const answered = await ended;
  expect([answered['grpc-status'], reasonOf(answered), taken]).toEqual(['13', 'invalid_argument', 0]);
});

test('a call with 20 KiB of headers is refused, and its connection stays open; one with 8 KiB is answered', async () => {
  using one = session();
  const call = (path: string, headerBytes: number): Promise<IncomingHttpHeaders> => {
    const pieces = Array.from({ length: 4 }, (_, at) => [`x-piece-${at}`, 'x'.repeat(headerBytes / 4)]);
    const { stream, ended } = open(one, path, { ...bearer, ...Object.fromEntries(pieces) });
    stream.end(grpcMessage(Buffer.alloc(0)));
    return ended;
  };
  for (const path of [append, appends]) {
    const refused = await call(path, 20 * 1024);
    expect([refused['grpc-status'], reasonOf(refused), taken]).toEqual(['8', 'invalid_argument', 0]);
  }
  expect([(await call(append, 8 * 1024))['grpc-status'], taken]).toEqual(['0', 1]);
  await expectCalm();
});

test('a node that stops ends TLS connections, also those whose handshake has not ended', async () => {
  const stopping = await startListeningNode({ tls: ownCertificate(), handlers: {} });
  const over = new AbortController();
  const attacker = await attackerOf({ grpc: stopping.grpcAddress, tls: true }, over.signal);
  const silent = await attackerOf({ grpc: stopping.grpcAddress }, over.signal);
  await stopping[Symbol.asyncDispose]();
  await Promise.all([untilClosed(attacker), untilClosed(silent)]);
});

test('a malformed TLS handshake ends with its connection', async () => {
  const over = new AbortController();
  const plain = await attackerOf({ grpc: secure.grpcAddress }, over.signal);
  await untilClosed(plain);
  expect(over.signal.aborted).toBe(false);
  await expectCalm(secure);
});

test('a very long timeout has not passed', async () => {
  using one = session();
  const { stream, ended } = open(one, append, { ...bearer, 'grpc-timeout': '99999999H' });
  stream.end(grpcMessage(Buffer.alloc(0)));
  expect((await ended)['grpc-status']).toBe('0');
});

test('a message with a flag byte of 0x80 is refused, also in a stream', async () => {
  using one = session();
  for (const path of [append, appends]) {
    const { stream, ended } = open(one, path);
    stream.end(grpcMessage(Buffer.alloc(0), 0x80));
    const answered = await ended;
    expect([reasonOf(answered), taken]).toEqual(['invalid_argument', 0]);
  }
});

test('errors that repeat what was sent are cut to 4 KiB, and no other call of the connection ends', async () => {
  using one = session();
  thrown = new LedgerError('invalid_signature', 'x'.repeat(70_000), { expected_canonical_json: '"'.repeat(200_000) });
  const idle = Array.from({ length: 40 }, () => open(one, appends));
  const wrong = open(one, append);
  wrong.stream.end(grpcMessage(Buffer.alloc(0)));
  const unknown = open(one, '/grpc.health.v1.Health/Check');
  unknown.stream.end(grpcMessage(Buffer.concat([Buffer.from([0x0a, 0x90, 0x4e]), Buffer.alloc(10_000, 'x')])));
  for (const { ended } of [wrong, unknown]) {
    const answered = await ended;
    expect(Buffer.from(String(answered['grpc-status-details-bin']), 'base64').length).toBeLessThanOrEqual(4 * 1024);
    expect(String(answered['grpc-message']).length).toBeLessThan(2 * 1024);
  }
  expect([reasonOf(await wrong.ended), reasonOf(await unknown.ended)]).toEqual(['invalid_signature', 'not_found']);
  thrown = null;
  expect(idle.map(({ stream }) => stream.closed)).toEqual(idle.map(() => false));
  one.destroy();
  await expectCalm();
});

/** Attackers keep the processors busy all the time. */
const attackMs = isNightly ? 1_500 : 500;

async function attack(attackers: (signal: AbortSignal) => Promise<unknown>, began = async () => {}): Promise<void> {
  const over = new AbortController();
  const running = attackers(over.signal);
  await began();
  await delay(attackMs);
  over.abort();
  await running;
}

/** The most that the node held during an attack. */
async function mostHeldDuring(attackers: (signal: AbortSignal) => Promise<unknown>): Promise<number> {
  const sampled = sampleMost(() => node.memory.heldBytes());
  // What answers is loaded with the first request.
  const isAnswering = () => expect.poll(() => node.memory.heldBytes(), { interval: 1 }).toBeGreaterThan(0);
  await attack(attackers, isAnswering);
  return sampled();
}

test('reflection reads the next request of a stream once its answer was taken', async () => {
  const most = await mostHeldDuring((signal) => reflect(target(), signal, 2));
  // A quarter of the budget for answers, and one for requests.
  expect(most).toBeLessThan(70 * mebibyte);
  expect(most).toBeGreaterThan(0);
  await expectCalm();
});

test('a stream of reflection holds one answer that is not taken, however many requests it sends', async () => {
  const over = new AbortController();
  const attacker = await attackerOf(target(), over.signal, { windowBytes: 0 });
  const symbol = Buffer.from('svc.v1.LedgerService');
  const request = grpcMessage(Buffer.concat([Buffer.from([0x22, symbol.length]), symbol]));
  const id = attacker.nextStream();
  const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
  await attacker.send(frame(frameType.headers, endHeaders, id, callHeaders(path)));
  await attacker.send(data(id, request));
  await expect.poll(() => node.memory.heldBytes('answer')).toBeGreaterThan(0);
  const one = node.memory.heldBytes('answer');
  const more = Buffer.concat(Array.from({ length: 200 }, () => request));
  await attacker.send(data(id, more));
  // They wait, and count. Ten times a second the port says what it holds.
  await expect.poll(() => node.memory.heldBytes('request')).toBeGreaterThanOrEqual(limits.grpcCallBytes + more.length);
  await delay(250);
  expect(node.memory.heldBytes('answer')).toBe(one);
  over.abort();
  await untilClosed(attacker);
  await expectCalm();
});

test.each([
  ['that send messages without end', leaveUnfinished],
  ['that read no answers', untaken],
])('connections %s hold nothing of the budget once they are reset, with TLS too', async (_, leave) => {
  for (const attacked of [node, secure]) {
    const at = { grpc: attacked.grpcAddress, tls: attacked === secure };
    const over = new AbortController();
    const attacking = leave(at, over.signal, 10);
    await expect.poll(() => attacked.memory.heldBytes('request')).toBeGreaterThan(mebibyte);
    await delay(2_000);
    over.abort();
    await attacking;
    await expectCalm(attacked);
  }
});

test('a caller that does not read its socket holds little', async () => {
  const most = await mostHeldDuring((signal) => untaken(target(), signal, 2));
  // For each connection 8 MiB of calls, which are 256, and their answers of at most 4 KiB.
  expect(most).toBeLessThan(24 * mebibyte);
  expect(most).toBeGreaterThan(0);
  await expectCalm();
});

test('unfinished connections do not block the port, and hold nothing of the budget, with TLS too', async () => {
  for (const attacked of [node, secure]) {
    const at = { grpc: attacked.grpcAddress, tls: attacked === secure };
    await attack(
      (signal) => shakeHands(at, signal, 2),
      async () => {
        // Until the connections have begun.
        await delay(100);
        await expectCalm(attacked);
      },
    );
    await expectCalm(attacked);
  }
});

test.each(Object.entries(floods))(
  'after a flood of %s the node holds nothing and answers an honest call, with TLS too',
  async (kind, flood) => {
    for (const attacked of [node, secure]) {
      const over = new AbortController();
      const attacker = await attackerOf({ grpc: attacked.grpcAddress, tls: attacked === secure }, over.signal);
      await flood(attacker);
      // The node takes the other floods for what busy clients may do.
      if (kind === 'CONTINUATION') await untilClosed(attacker);
      over.abort();
      await untilClosed(attacker);
      await expectCalm(attacked);
    }
  },
);

test('streams that are reset before they are handled end nothing, with TLS too', async () => {
  const [port, securePort] = [node, secure].map(({ grpc }) => grpc.port);
  await resetFirstStreams(port ?? 0);
  await resetStreamsOverTls(securePort ?? 0);
  for (const attacked of [node, secure]) await expectCalm(attacked);
});

test('a header with bytes that gRPC does not allow is said nowhere', async () => {
  const said: string[] = [];
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => said.push(String(chunk)) > 0);
  onTestFinished(() => write.mockRestore());
  const over = new AbortController();
  const attacker = await attackerOf(target(), over.signal);
  const headers = callHeaders('/svc.v1.HealthService/GetHealth', { authorization: 'Bearer svc_sk_live_secret\u00ff' });
  const id = attacker.nextStream();
  await attacker.send(
    Buffer.concat([frame(frameType.headers, endHeaders, id, headers), data(id, grpcMessage(Buffer.alloc(0)), true)]),
  );
  await expectCalm();
  over.abort();
  await untilClosed(attacker);
  expect(said).toEqual([]);
});
