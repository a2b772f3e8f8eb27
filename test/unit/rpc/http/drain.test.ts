import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { type ListeningNode, startListeningNode } from '../../../support/listening-node.ts';
import { openTextSocket, type TextSocket } from '../../../support/raw-http.ts';

const page = 'x'.repeat(16 * 1024 * 1024);
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function start(health: () => Promise<object>): Promise<ListeningNode> {
  const node = await startListeningNode({ grpc: false, handlers: { 'HealthService.GetHealth': health } });
  cleanups.push(() => node[Symbol.asyncDispose]());
  return node;
}

interface Client {
  readonly socket: TextSocket;
  /** Whether the node has ended the connection in order; false after a reset. */
  readonly ended: Promise<boolean>;
}

async function open({ http }: ListeningNode): Promise<Client> {
  const socket = openTextSocket(http.port, { allowHalfOpen: true });
  cleanups.push(() => socket.destroy());
  const ended = new Promise<boolean>((resolve) => {
    socket.once('end', () => resolve(true)).once('error', () => resolve(false));
  });
  await once(socket, 'connect');
  return { socket, ended };
}

const request = 'GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n';

test('an idle connection is ended in order, and a request that arrives during the drain is answered with `connection: close`', async () => {
  const node = await start(async () => ({ status: 'ok' }));
  const clients = await Promise.all(Array.from({ length: 20 }, () => open(node)));
  for (const { socket } of clients) socket.write(request);
  await expect.poll(() => clients.every(({ socket }) => socket.text.includes('200 OK'))).toBe(true);
  const closed = node.http.close(5_000);
  await delay(20);
  const [asking, idle] = [clients.slice(0, 10), clients.slice(10)];
  for (const { socket } of asking) socket.write(request);
  for (const { ended } of clients) expect(await ended).toBe(true);
  for (const { socket } of asking) {
    expect(socket.text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(socket.text.match(/^connection: close\r$/gim)).toHaveLength(1);
  }
  // What crosses the end of the connection is read and dropped: no reset.
  for (const { socket } of idle) socket.write(request);
  await delay(50);
  expect(idle.map(({ socket }) => socket.errored)).toEqual(idle.map(() => null));
  for (const { socket } of clients) socket.end();
  await closed;
});

test('connections that wait to be accepted when the port closes are answered', async () => {
  const node = await start(async () => ({ status: 'ok' }));
  const sockets = Array.from({ length: 20 }, () => openTextSocket(node.http.port));
  for (const socket of sockets) socket.write(request);
  const ends = Promise.allSettled(sockets.map((socket) => once(socket, 'close')));
  // The sockets connect. The node accepts one of them in each iteration of the event loop.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  await node.http.close(5_000);
  await ends;
  expect(sockets.map(({ errored, text }) => errored ?? text.slice(0, 15))).toEqual(
    sockets.map(() => 'HTTP/1.1 200 OK'),
  );
});

test('each pipelined request is answered during the drain, and only the last answer has `connection: close`', async () => {
  const go = Promise.withResolvers<void>();
  const node = await start(() => go.promise.then(() => ({ status: 'ok' })));
  const client = await open(node);
  client.socket.write(request.repeat(10));
  await expect.poll(() => node.pipeline.running.size).toBe(4);
  const closed = node.http.close(5_000);
  await delay(20);
  go.resolve();
  expect(await client.ended).toBe(true);
  client.socket.end();
  await closed;
  expect(client.socket.text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(10);
  expect(client.socket.text.match(/^connection: close\r$/gim)).toHaveLength(1);
});

test('an answer that its client is still reading when the drain begins is sent whole', async () => {
  const node = await start(async () => ({ status: page }));
  const client = await open(node);
  client.socket.pause().write(request);
  await expect.poll(() => client.socket.bytesRead).toBeGreaterThan(0);
  await expect.poll(() => node.pipeline.running.size).toBe(0);
  const closed = node.http.close(10_000);
  await delay(1_500);
  client.socket.resume();
  expect(await client.ended).toBe(true);
  client.socket.end();
  await closed;
  expect(client.socket.text.length).toBeGreaterThan(page.length);
});

test('a node without connections stops at once, and one whose client never ends waits for a moment only', async () => {
  const node = await start(async () => ({ status: 'ok' }));
  const begun = performance.now();
  await node.http.close(10_000);
  expect(performance.now() - begun).toBeLessThan(400);
  const other = await start(async () => ({ status: 'ok' }));
  await open(other);
  const again = performance.now();
  await other.http.close(10_000);
  expect(performance.now() - again).toBeLessThan(4_000);
});
