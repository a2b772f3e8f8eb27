import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { inodeOf, unsentBytes } from '../../../../src/rpc/http/socket-state.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { listeningNodeForTests } from '../../../support/listening-node.ts';
import { openSocket } from '../../../support/raw-http.ts';
import { newTlsKeys } from '../../../support/tls-keys.ts';

const MiB = 1024 * 1024;
/** The largest page of events. The kernel's buffers take it whole. */
const page = 'x'.repeat(2 * MiB);
const getPage = 'GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n';
/** How many pages were asked for. */
let pages = 0;
const handlers = {
  'HealthService.GetHealth': async () => {
    pages += 1;
    return { status: page };
  },
};

/** Added to the time at which connections are looked at. */
let aheadMs = 0;
const monotonicMs = () => performance.now() + aheadMs;
const plain = await listeningNodeForTests({ grpc: false, handlers, monotonicMs });
const overTls = await listeningNodeForTests({ grpc: false, handlers, monotonicMs, tls: newTlsKeys() });

function fileDescriptorOf(socket: Socket): number {
  return (socket as Socket & { readonly _handle: { readonly fd: number } })._handle.fd;
}

const sockets: Socket[] = [];
afterEach(() => {
  aheadMs = 0;
  pages = 0;
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Two looks at the connections. */
const looks = () => delay(2 * limits.answerSweepMs + 200);

function ask(socket: Socket): Socket {
  sockets.push(socket);
  socket.on('error', () => {}).write(getPage);
  return socket;
}
/** Waits until the node has looked at a connection after its answer. */
async function quietLook(): Promise<void> {
  await expect.poll(() => pages).toBeGreaterThan(0);
  await looks();
  aheadMs += limits.answerUnreadLookMs;
  await looks();
}
/** Reads until so many bytes of the connection were read, and no more than what comes with them. */
async function readTo(socket: Socket, bytes: number): Promise<void> {
  while (socket.bytesRead < bytes) if (socket.read() === null) await once(socket, 'readable');
}
/** Fails if the connection was reset. */
async function expectOpen(socket: Socket): Promise<void> {
  // The node passes over empty lines before a request.
  for (let line = 0; line < 2; line += 1) {
    socket.write('\r\n');
    await delay(100);
  }
  expect(socket.destroyed).toBe(false);
}

test.each([
  ['HTTP', () => openSocket(plain.http.port)],
  ['HTTPS', () => connectTls({ port: overTls.http.port, host: '127.0.0.1', rejectUnauthorized: false })],
])('an unread answer of %s that the kernel took whole ends with its connection, by a reset', async (_name, open) => {
  const socket = ask(open());
  await quietLook();
  aheadMs += limits.answerStallMs / 2;
  await looks();
  await expectOpen(socket);
  aheadMs += limits.answerStallMs;
  await looks();
  await expect(readTo(socket, page.length)).rejects.toMatchObject({ code: 'ECONNRESET' });
});

test('a client that takes a little of such an answer now and then keeps its connection', async () => {
  const socket = ask(openSocket(plain.http.port));
  await quietLook();
  for (let part = 1; part <= 3; part += 1) {
    aheadMs += limits.answerStallMs / 2;
    await readTo(socket, part * 256 * 1024);
    await looks();
  }
  await expectOpen(socket);
});

test('a client that takes an answer late and asks for the next one keeps its connection', async () => {
  const socket = ask(openSocket(plain.http.port));
  const part = 300 * 1024;
  await readTo(socket, part);
  await quietLook();
  for (let read = 1; read <= 3; read += 1) {
    aheadMs += limits.answerStallMs / 2;
    await readTo(socket, read * page.length);
    socket.write(getPage);
    await readTo(socket, read * page.length + part);
    await quietLook();
  }
  await expectOpen(socket);
});

test('an idle connection whose answer was read stays', async () => {
  const socket = ask(openSocket(plain.http.port));
  await readTo(socket, page.length);
  await quietLook();
  aheadMs += 2 * limits.answerStallMs;
  await looks();
  await expectOpen(socket);
});

test('the bytes that wait are told of the sockets that were asked for, and of no others', async () => {
  const socket = ask(openSocket(plain.http.port));
  await once(socket, 'connect');
  const [, inode = ''] = /socket:\[(\d+)\]/.exec(readlinkSync(`/proc/self/fd/${fileDescriptorOf(socket)}`)) ?? [];
  expect(inodeOf(socket)).toBe(inode);
  expect(await unsentBytes(new Set([inode]))).toEqual(new Map([[inode, 0]]));
  socket.destroy();
  expect(inodeOf(socket)).toBe('');
});
