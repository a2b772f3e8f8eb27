import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect, onTestFinished, test } from 'vitest';
import { MasterService } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import {
  callHeaders,
  data,
  endHeaders,
  endStream,
  frame,
  frameType,
  grpcMessage,
  preface,
  settings,
  windowUpdate,
} from '../../../support/attacks/http2-frames.ts';
import { callGrpc, grpcClient } from '../../../support/grpc-client.ts';
import { watchHost } from '../../../support/host-watch.ts';
import { bearer, type ListeningNode, masterId, startListeningNode } from '../../../support/listening-node.ts';
import { openSocket, openTextSocket } from '../../../support/raw-http.ts';
import { newTlsKeys } from '../../../support/tls-keys.ts';

const callMs = 1_500;

async function start(begun: () => void, hash = 'answer', ms = callMs): Promise<ListeningNode> {
  const node = await startListeningNode({
    handlers: {
      'MasterService.AppendEvent': async () => {
        begun();
        await delay(ms);
        return { hash };
      },
    },
  });
  onTestFinished(() => node[Symbol.asyncDispose]());
  return node;
}

/** A client that sends nothing after its preface, not even the end of its connection. */
async function openSilent({ grpc }: ListeningNode): Promise<void> {
  const socket = openTextSocket(grpc.port, { allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  socket.write(Buffer.concat([preface, settings()]));
  await once(socket, 'data');
}

const request = create(MasterService.method.appendEvent.input, { uuid: masterId, eventType: 'A', payload: '{}' });
/** The frames of a call, on stream 1. */
const appendCall = Buffer.concat([
  frame(frameType.headers, endHeaders, 1, callHeaders('/svc.v1.MasterService/AppendEvent', bearer)),
  data(1, grpcMessage(toBinary(MasterService.method.appendEvent.input, request)), true),
]);

/** The whole frames in `bytes`. */
function* framesIn(bytes: Buffer) {
  for (let at = 0; at + 9 <= bytes.length; ) {
    const [type = 0, flags = 0] = bytes.subarray(at + 3);
    const stream = bytes.readUInt32BE(at + 5);
    const start = at + 9;
    at = start + bytes.readUIntBE(at, 3);
    if (at <= bytes.length) yield { type, flags, stream, payload: bytes.subarray(start, at) };
  }
}

/** What a client was told of a call on stream 1. */
function fateOf(received: Buffer): 'answered' | 'refused' | 'nothing' {
  let fate: 'refused' | 'nothing' = 'nothing';
  for (const { type, flags, stream, payload } of framesIn(received)) {
    if (type === frameType.headers && stream === 1 && (flags & endStream) !== 0) return 'answered';
    // The last stream that the server may have begun, and NO_ERROR.
    if (type === frameType.goaway && payload.readBigUInt64BE() === 0n) fate = 'refused';
  }
  return fate;
}

test('a client that never ends its connection does not delay the close of the port', async () => {
  const node = await start(() => {});
  await openSilent(node);
  const [host, fromMs] = [watchHost(), performance.now()];
  await node.grpc.close(limits.stopGraceMs);
  const tookMs = performance.now() - fromMs;
  expect(tookMs).toBeGreaterThanOrEqual(limits.drainLingerMs);
  expect(tookMs).toBeLessThan(host.bound(2_000));
});

test('a call under way when the port closes gets its answer, however long others are silent', async () => {
  const begun = Promise.withResolvers<void>();
  const node = await start(begun.resolve);
  await openSilent(node);
  const client = grpcClient(node.grpcAddress);
  onTestFinished(() => client.close());
  const answered = callGrpc(client, MasterService.method.appendEvent, request, bearer);
  await begun.promise;
  const [host, fromMs] = [watchHost(), performance.now()];
  await node.grpc.close(limits.stopGraceMs);
  expect((await answered).message).toMatchObject({ hash: 'answer' });
  expect(performance.now() - fromMs).toBeLessThan(host.bound(callMs + 2_000));
});

test('calls on connections that wait when the port closes are answered, or refused by a GOAWAY', async () => {
  const node = await start(() => {}, 'answer', 0);
  const clients = Array.from({ length: 20 }, () => {
    const socket = openTextSocket(node.grpc.port);
    socket.write(Buffer.concat([preface, settings(), appendCall]));
    return { socket, closed: new Promise((resolve) => socket.once('close', resolve)) };
  });
  // The sockets connect. The worker accepts one of them in each iteration of its event loop.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  await node.grpc.close(limits.stopGraceMs);
  for (const { closed } of clients) await closed;
  const fates = clients.map(({ socket }) => socket.errored ?? fateOf(Buffer.from(socket.text, 'latin1')));
  expect(fates.filter((fate) => fate !== 'answered' && fate !== 'refused')).toEqual([]);
  expect(fates).toContain('answered');
});

test('a client that reads slowly gets the whole answer of a port that closes', async () => {
  const bytes = 2 * 1024 * 1024;
  const begun = Promise.withResolvers<void>();
  const node = await start(begun.resolve, 'x'.repeat(bytes), 0);
  const socket = openSocket(node.grpc.port);
  onTestFinished(() => void socket.destroy());
  socket.write(Buffer.concat([preface, settings({ 4: 2 ** 31 - 1 }), windowUpdate(0, 2 ** 30), appendCall]));
  await begun.promise;
  const closed = node.grpc.close(limits.stopGraceMs);
  // What a client sends to a connection that was closed is answered by a reset.
  const pings = setInterval(() => socket.write(frame(frameType.ping, 0, 0, Buffer.alloc(8))), 100);
  onTestFinished(() => clearInterval(pings));
  const ended = new Promise((resolve) => socket.once('close', resolve));
  await delay(3 * limits.drainLingerMs);
  let received = 0;
  socket.on('data', (part) => {
    received += part.length;
  });
  socket.resume();
  const host = watchHost();
  const fromMs = performance.now();
  await closed;
  await ended;
  expect(received).toBeGreaterThan(bytes);
  // Nothing waits any more once the client has it all.
  expect(performance.now() - fromMs).toBeLessThan(host.bound(3_000));
});

test('a connection whose TLS handshake is under way when the port closes is asked to end (GOAWAY)', async () => {
  const node = await startListeningNode({ handlers: {}, tls: newTlsKeys() });
  onTestFinished(() => node[Symbol.asyncDispose]());
  const socket = openSocket(node.grpc.port);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  // The port has accepted it.
  await delay(100);
  const closed = node.grpc.close(limits.stopGraceMs);
  await delay(100);
  const secure = connectTls({ socket, rejectUnauthorized: false, ALPNProtocols: ['h2'] }).on('error', () => {});
  let received = Buffer.alloc(0);
  secure.on('data', (part) => {
    received = Buffer.concat([received, part]);
  });
  secure.write(Buffer.concat([preface, settings()]));
  await expect.poll(() => Array.from(framesIn(received), ({ type }) => type)).toContain(frameType.goaway);
  secure.destroy();
  await closed;
});
