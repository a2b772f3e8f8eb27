import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
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
  socket.write(getPage);
  return socket;
}
/** Waits until the node may have looked at a connection for the first time after it sent its answer. */
async function firstLook(): Promise<void> {
  await expect.poll(() => pages).toBeGreaterThan(0);
  await looks();
  aheadMs += limits.answerQuietMs;
  await looks();
}
/** Reads so many bytes of the answer, and no more than what comes with them. */
async function readPart(socket: Socket, bytes: number): Promise<void> {
  let left = bytes;
  while (left > 0) {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) await once(socket, 'readable');
    else left -= chunk.length;
  }
}
/** Fails if the connection was reset. */
async function expectOpen(socket: Socket): Promise<void> {
  // The node passes over empty lines before a request.
  socket.write('\r\n');
  await delay(100);
  socket.write('\r\n');
  await delay(100);
  expect(socket.destroyed).toBe(false);
}

test.each([
  ['HTTP', () => openSocket(plain.http.port)],
  ['HTTPS', () => connectTls({ port: overTls.http.port, host: '127.0.0.1', rejectUnauthorized: false })],
])('an unread answer of %s that the kernel took whole ends with its connection, by a reset', async (_name, open) => {
  const socket = ask(open());
  await firstLook();
  aheadMs += limits.answerStallMs - 4 * limits.answerSweepMs;
  await looks();
  await expectOpen(socket);
  aheadMs += 4 * limits.answerSweepMs;
  await looks();
  await expect(readPart(socket, page.length)).rejects.toMatchObject({ code: 'ECONNRESET' });
});

test('a client that takes a little of such an answer now and then keeps its connection', async () => {
  const socket = ask(openSocket(plain.http.port));
  await firstLook();
  for (let part = 0; part < 3; part += 1) {
    aheadMs += limits.answerStallMs - 4 * limits.answerSweepMs;
    await readPart(socket, 256 * 1024);
    await looks();
  }
  await expectOpen(socket);
});

test('an idle connection whose answer was read stays', async () => {
  const socket = ask(openSocket(plain.http.port));
  await readPart(socket, page.length);
  await firstLook();
  aheadMs += limits.answerStallMs;
  await looks();
  await expectOpen(socket);
});
