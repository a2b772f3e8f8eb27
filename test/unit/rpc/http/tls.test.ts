import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { expect, test } from 'vitest';
import { pages } from '../../../../src/node/pages.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { listeningNodeForTests, startListeningNode } from '../../../support/listening-node.ts';
import { openSocket, parts, sendRaw } from '../../../support/raw-http.ts';
import { newTlsKeys } from '../../../support/tls-keys.ts';

const tls = newTlsKeys();
const handlers = { 'HealthService.GetHealth': async () => ({ status: 'ok' }) };
const secure = await listeningNodeForTests({ grpc: false, handlers, tls, pages });
const plain = await listeningNodeForTests({ grpc: false, handlers, pages });

/** Sends bytes over TLS, and returns what comes back until the connection ends. */
async function overTls(bytes: string, { http } = secure): Promise<string> {
  const socket = connectTls({ port: http.port, host: '127.0.0.1', ca: tls.cert, servername: 'localhost' });
  socket.write(bytes);
  return text(socket);
}

const end = 'Host: a\r\nConnection: close\r\n\r\n';
const empty = 'Content-Type: application/json\r\nContent-Length: 0\r\n';
const requests: [string, string][] = [
  ['REST', `GET /health HTTP/1.1\r\n${end}`],
  ['Connect', `POST /svc.v1.HealthService/GetHealth HTTP/1.1\r\n${empty}${end}`],
  ['a page', `GET /openapi.json HTTP/1.1\r\n${end}`],
  ['a redirection', `GET / HTTP/1.1\r\n${end}`],
  ['a refusal', `GET /v1/nothing HTTP/1.1\r\n${end}`],
  ['OPTIONS', `OPTIONS /health HTTP/1.1\r\n${end}`],
  ['bytes that are no HTTP', 'hello\r\n\r\n'],
];
const hsts = /^strict-transport-security: max-age=31536000\r$/gim;

test.each(requests)('an answer over TLS says that this host speaks TLS only: %s', async (_name, bytes) => {
  expect((await overTls(bytes)).match(hsts)).toHaveLength(1);
});

test('a connection that waits to be accepted when the port closes is answered over TLS too', async () => {
  await using node = await startListeningNode({ grpc: false, handlers, tls });
  const answer = overTls(`GET /health HTTP/1.1\r\n${end}`, node);
  // The socket connects.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  await node.http.close(5_000);
  expect(await answer).toMatch(/^HTTP\/1\.1 200 OK/);
});

test.each(requests)('an answer without TLS does not: %s', async (_name, bytes) => {
  expect(await sendRaw(plain.http.port, bytes)).not.toMatch(/strict-transport-security/i);
});

test('a TLS handshake that does not end closes its connection in time', async () => {
  const begun = performance.now();
  const sockets = Array.from({ length: 5 }, () => openSocket(secure.http.port));
  const half = openSocket(secure.http.port);
  // The head of a ClientHello whose rest never comes.
  half.write(Buffer.from([0x16, 3, 1, 2, 0, 1]));
  await Promise.all([...sockets, half].map((socket) => once(socket.resume(), 'close')));
  expect(performance.now() - begun).toBeGreaterThan(limits.tlsHandshakeTimeoutMs - 1_000);
  expect(performance.now() - begun).toBeLessThan(limits.tlsHandshakeTimeoutMs + 5_000);
  expect(secure.lines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

test('unfinished handshakes do not delay a stop', async () => {
  const node = await startListeningNode({ grpc: false, handlers, tls });
  const socket = openSocket(node.http.port);
  await once(socket, 'connect');
  const begun = performance.now();
  await node.http.close(5_000);
  expect(performance.now() - begun).toBeLessThan(3_000);
  await node[Symbol.asyncDispose]();
});

test.each(['GET', 'HEAD', 'POST', 'DELETE'])('%s of * is an unknown path', async (method) => {
  const answer = await sendRaw(plain.http.port, `${method} * HTTP/1.1\r\n${end}`);
  expect(parts(method === 'HEAD' ? `${answer.slice(0, 12)}\r\n\r\n` : answer)).toEqual({
    status: 404,
    code: method === 'HEAD' ? undefined : 'route_not_found',
  });
});

test('OPTIONS of * names the methods of this service', async () => {
  const answer = await sendRaw(plain.http.port, `OPTIONS * HTTP/1.1\r\n${end}`);
  expect(answer).toMatch(/^HTTP\/1\.1 204 /);
  expect(answer).toMatch(/^allow: GET, HEAD, POST, PATCH, DELETE, OPTIONS\r$/im);
});
