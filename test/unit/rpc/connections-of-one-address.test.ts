import { once } from 'node:events';
import { get } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { get as getOverTls } from 'node:https';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { DeveloperService } from '../../../src/gen/svc/v1/developer_pb.ts';
import { callGrpc, grpcClient } from '../../support/grpc-client.ts';
import { bearer, type ListeningNode, listeningNodeForTests } from '../../support/listening-node.ts';
import { newTlsKeys } from '../../support/tls-keys.ts';

const connectionsMax = 8;
/** A call that is answered when the test says so. */
const handlers = { 'DeveloperService.GetDeveloper': () => answered.promise };
let answered = Promise.withResolvers<object>();
const plain = await listeningNodeForTests({ handlers, connectionsMax });
const overTls = await listeningNodeForTests({ handlers, connectionsMax, tls: newTlsKeys(), grpc: false });
/** Of another client: the whole of 127.0.0.0/8 is the machine itself. */
const localAddress = '127.0.0.2';

/** Connections that say so much and no more. Returns those that were not closed. */
async function silent(port: number, greeting = ''): Promise<Set<Socket>> {
  const open = new Set<Socket>();
  for (let at = 0; at < connectionsMax; at += 1) {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    open.add(socket.on('error', () => {}).on('close', () => open.delete(socket)));
    socket.resume().write(greeting);
  }
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
  });
  return open;
}

function statusOf(node: ListeningNode): Promise<number | undefined> {
  return answerOf(node, '/v1/health', localAddress);
}

function answerOf(
  { http, base }: ListeningNode,
  path: string,
  from: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number | undefined> {
  const options = { host: '127.0.0.1', port: http.port, path, localAddress: from, agent: false, headers };
  return new Promise((resolve, reject) => {
    const request = base.startsWith('https')
      ? getOverTls({ ...options, rejectUnauthorized: false }, (response) => resolve(response.resume().statusCode))
      : get(options, (response) => resolve(response.resume().statusCode));
    request.on('error', reject);
  });
}

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0';
/** A request whose body never ends. */
const unfinished = 'POST /v1/developer/register HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{';

test.each([
  ['without a request', plain, ''],
  ['with an unfinished request', plain, unfinished],
  ['without a TLS handshake', overTls, ''],
])('connections of one address %s do not keep another one out of the HTTP port', async (_, node, greeting) => {
  const open = await silent(node.http.port, greeting);
  expect(await statusOf(node)).toBeDefined();
  await expect.poll(() => open.size).toBe(connectionsMax - 1);
});

test('connections of one address do not keep another one out of the gRPC port', async () => {
  const open = await silent(plain.grpc.port, preface);
  const session = connectHttp2(`http://${plain.grpcAddress}`, {
    createConnection: () => connect({ host: '127.0.0.1', port: plain.grpc.port, localAddress }),
  });
  onTestFinished(() => session.destroy());
  await once(session, 'remoteSettings');
  await expect.poll(() => open.size).toBe(connectionsMax - 1);
});

test.each([
  ['REST', plain],
  ['REST over TLS', overTls],
])('a call of %s that is served keeps its connection while others come', async (_, node) => {
  answered = Promise.withResolvers();
  const called = answerOf(node, '/v1/developer/me', '127.0.0.1', bearer);
  await expect.poll(() => node.pipeline.running.size).toBe(1);
  const open = await silent(node.http.port);
  // One came too many: it took the place of an idle one.
  await expect.poll(() => open.size).toBe(connectionsMax - 1);
  expect(await statusOf(node)).toBeDefined();
  answered.resolve({});
  expect(await called).toBe(200);
});

test('a call of gRPC that is served keeps its connection while others come', async () => {
  answered = Promise.withResolvers();
  const client = grpcClient(plain.grpcAddress);
  onTestFinished(() => client.close());
  const called = callGrpc(client, DeveloperService.method.getDeveloper, {}, bearer);
  await expect.poll(() => plain.pipeline.running.size).toBe(1);
  const open = await silent(plain.grpc.port, preface);
  await expect.poll(() => open.size).toBe(connectionsMax - 1);
  answered.resolve({});
  expect((await called).error).toBe(null);
});
