import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { listeningNodeForTests } from '../../../support/listening-node.ts';
import { openSocket, sampleMost } from '../../../support/raw-http.ts';

const MiB = 1024 * 1024;
const memory = new MemoryBudget(64 * MiB);
/** A page that no kernel buffer takes whole. */
const page = 'x'.repeat(15 * MiB);
const rpcPath = '/svc.v1.SandboxService/RunSandbox';

/** How many lines of the stream were taken. */
let lines = 0;
/** How many pages were asked for. */
let pages = 0;
/** Added to the time at which connections are looked over. */
let aheadMs = 0;
/** A time that stands still meanwhile. null: it goes on. */
let stillMs: number | null = null;
const node = await listeningNodeForTests({
  grpc: false,
  handlers: {
    'HealthService.GetHealth': async () => {
      pages += 1;
      return { status: page };
    },
    'SandboxService.RunSandbox': async function* () {
      for (;;) {
        lines += 1;
        yield { line: 'y'.repeat(64 * 1024) };
      }
    },
  },
  memory,
  monotonicMs: () => (stillMs ?? performance.now()) + aheadMs,
});

const sockets: Socket[] = [];
afterEach(async () => {
  aheadMs = 0;
  stillMs = null;
  for (const socket of sockets.splice(0)) socket.destroy();
  // Whatever happened to a connection, nothing stays counted for it, and no call goes on.
  await expect.poll(() => memory.heldBytes()).toBe(0);
  await expect.poll(() => node.pipeline.running.size).toBe(0);
});

function ask(request: string): Socket {
  const socket = openSocket(node.http.port);
  sockets.push(socket);
  socket.pause().write(request);
  return socket;
}
/** Waits until the node has ended what waits for clients, and the connection, which nobody has read from until then. */
async function ended(socket: Socket): Promise<void> {
  await expect.poll(() => memory.heldBytes('answer')).toBe(0);
  await untilClosed(socket);
}
/** Waits until a connection has ended, in order or by a reset. */
async function untilClosed(socket: Socket): Promise<void> {
  await new Promise((resolve) => socket.once('close', resolve).resume());
}
/** Holds a part of the budget until it is disposed of. */
function fill(kind: 'read' | 'answer' | 'stream', mebibytes: number): Disposable {
  memory.add(kind, mebibytes * MiB);
  return { [Symbol.dispose]: () => memory.release(kind, mebibytes * MiB) };
}
const holdsMoreThan = (mebibytes: number) =>
  expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(mebibytes * MiB);
const getPage = 'GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n';
const emptyMessage = Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]).toString('latin1');

test('an answer that waits for its client counts in the memory budget until the client has gone', async () => {
  const socket = ask(getPage);
  await holdsMoreThan(8);
  socket.destroy();
  await expect.poll(() => memory.heldBytes('answer')).toBe(0);
});

test.each([
  ['a page of REST', getPage],
  ['a stream of REST', 'GET /v1/sandbox/run HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['server-sent events', 'GET /v1/sandbox/run HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n'],
  [
    'a stream of Connect',
    `POST ${rpcPath} HTTP/1.1\r\nHost: a\r\nContent-Type: application/connect+json\r\nContent-Length: 7\r\n\r\n${emptyMessage}`,
  ],
  [
    'a page of Connect',
    'POST /svc.v1.HealthService/GetHealth HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
  ],
])('the connection of %s of which the client takes nothing is ended', async (_name, request) => {
  lines = 0;
  const socket = ask(request);
  await holdsMoreThan(0);
  // Until its kernel buffers are full the connection makes progress.
  await delay(limits.answerSweepMs + 300);
  const before = lines;
  aheadMs = limits.answerStallMs - 4 * limits.answerSweepMs;
  await delay(limits.answerSweepMs + 100);
  expect(memory.heldBytes('answer')).toBeGreaterThan(0);
  aheadMs = limits.answerStallMs;
  await ended(socket);
  // A stream waits for its client: what was not taken was not made either, but for what was on its way.
  expect(lines).toBeLessThanOrEqual(before + 2);
  expect(lines * 64 * 1024).toBeLessThan(16 * MiB);
});

test('a client that reads slowly gets all of its answer', async () => {
  const socket = ask('GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const closed = once(socket, 'close');
  let bytes = 0;
  socket.on('data', (chunk) => {
    bytes += chunk.length;
  });
  // A twentieth of it in each stretch that is nearly too long.
  for (let part = 1; part <= 20; part += 1) {
    socket.resume();
    await expect.poll(() => bytes >= (part * page.length) / 20, { interval: 1 }).toBe(true);
    socket.pause();
    aheadMs += limits.answerStallMs - 4 * limits.answerSweepMs;
    await delay(50);
  }
  socket.resume();
  await closed;
  expect(bytes).toBeGreaterThan(page.length);
});

test('a node that is nearly full ends answers much sooner if their client takes nothing', async () => {
  const [one, two] = [ask(getPage), ask(getPage)];
  await holdsMoreThan(24);
  using _filled = fill('read', 34);
  await delay(limits.answerSweepMs + 100);
  aheadMs = limits.answerStallFullMs;
  await ended(one);
  await ended(two);
});

test('a node that is nearly full ends the connection that holds most, and no other once a quarter of the budget is free', async () => {
  const small = ask('GET /v1/sandbox/run HTTP/1.1\r\nHost: a\r\n\r\n');
  await holdsMoreThan(0);
  const large = ask(getPage);
  await holdsMoreThan(12);
  using _filled = fill('read', 35);
  await delay(limits.answerSweepMs + 300);
  aheadMs = limits.answerStallFullMs;
  await expect.poll(() => memory.heldBytes('answer'), { timeout: 5_000 }).toBeLessThan(MiB);
  await untilClosed(large);
  await delay(limits.answerSweepMs + 100);
  expect(memory.heldBytes('answer')).toBeGreaterThan(0);
  expect(small.destroyed).toBe(false);
  aheadMs = limits.answerStallMs;
  await ended(small);
});

test('a node that is nearly full of what no connection holds gives clients of its HTTP port their usual time', async () => {
  const socket = ask(getPage);
  await holdsMoreThan(8);
  using _filled = fill('stream', 40);
  expect(memory.heldBytes()).toBeGreaterThan((3 * memory.maxBytes) / 4);
  await delay(limits.answerSweepMs + 300);
  aheadMs = limits.answerStallFullMs;
  await delay(2 * limits.answerSweepMs);
  expect(memory.heldBytes('answer')).toBeGreaterThan(8 * MiB);
  // Unless the connections themselves fill most of the rest.
  using _rest = fill('read', 10);
  await ended(socket);
});

test('answers that are not read also end sooner once they fill three quarters of their half', async () => {
  const asked = [ask(getPage), ask(getPage)];
  await holdsMoreThan(24);
  await delay(limits.answerSweepMs + 100);
  aheadMs = limits.answerStallFullMs;
  await expect.poll(() => memory.heldBytes('answer'), { timeout: 5_000 }).toBeLessThan(24 * MiB);
  await delay(limits.answerSweepMs + 100);
  // One was enough.
  expect(memory.heldBytes('answer')).toBeGreaterThan(8 * MiB);
  expect(asked.map(({ destroyed }) => destroyed)).toEqual([false, false]);
});

test('clients that ask for pages again and again and do not read them keep no reader from its pages', async () => {
  const most = sampleMost(() => memory.heldBytes('answer'));
  const asking = setInterval(() => ask(getPage), 4 * limits.answerStallRoomMs);
  const lengths: number[] = [];
  try {
    for (let at = 0; at < 4; at += 1) ask(getPage);
    await holdsMoreThan(24);
    for (let at = 0; at < 8; at += 1) {
      await delay(limits.answerStallRoomMs + 2 * limits.answerLookMs);
      // A reader may be refused just after this process stood still, and asks again.
      await vi.waitFor(async () => {
        const answer = await fetch(`${node.base}/v1/health`);
        const text = await answer.text();
        expect(answer.status).toBe(200);
        lengths.push(text.length);
      }, 10_000);
    }
  } finally {
    clearInterval(asking);
  }
  expect(Math.min(...lengths)).toBeGreaterThan(page.length);
  expect(most()).toBeLessThanOrEqual(memory.maxBytes / 2 + MiB);
});

test('when room is needed, a client that reads slowly keeps its page, and one that takes nothing ends', async () => {
  const slow = ask('GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const closed = once(slow, 'close');
  let bytes = 0;
  slow.on('data', (chunk) => {
    bytes += chunk.length;
    slow.pause();
    setTimeout(() => slow.resume(), 5);
  });
  slow.resume();
  await holdsMoreThan(8);
  ask(getPage);
  await holdsMoreThan(24);
  await delay(limits.answerStallRoomMs + 2 * limits.answerLookMs);
  // The page is still being read, so that there is room for no third one.
  expect(memory.heldBytes('answer')).toBeGreaterThan(24 * MiB);
  expect((await (await fetch(`${node.base}/v1/health`)).text()).length).toBeGreaterThan(page.length);
  await closed;
  expect(bytes).toBeGreaterThan(page.length);
});

test('a connection that holds more than its part of the answers’ share is refused its next large read', async () => {
  const greedy = ask(`${getPage.repeat(3)}GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  await holdsMoreThan(24);
  await expect.poll(() => node.pipeline.running.size).toBe(0);
  expect(memory.heldBytes('answer')).toBeLessThanOrEqual(memory.maxBytes / 2);
  let text = '';
  greedy.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  await untilClosed(greedy);
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);
  expect(statuses).toEqual(['200', '200', '503', '503']);
});

test('a connection that asks for more than its part ends no other one that takes nothing', async () => {
  // Otherwise connections would end on a slow machine because they have stalled for long.
  stillMs = performance.now();
  ask('GET /v1/sandbox/run HTTP/1.1\r\nHost: a\r\n\r\n');
  const [other, greedy] = [ask(getPage), ask(getPage)];
  await holdsMoreThan(24);
  await expect.poll(() => node.pipeline.running.size).toBe(1);
  // The node has to see first that nothing is taken any more.
  await delay(3 * limits.answerLookMs);
  aheadMs = limits.answerStallRoomMs;
  const before = pages;
  greedy.write(getPage);
  await expect.poll(() => pages).toBe(before + 1);
  await expect.poll(() => node.pipeline.running.size).toBe(1);
  let bytes = 0;
  other.on('data', (chunk) => {
    bytes += chunk.length;
  });
  other.resume();
  await expect.poll(() => bytes).toBeGreaterThan(page.length);
});

/** Two clients that read a page each, with a pause after each piece. */
async function readTwo() {
  const reading = [0, 1].map(() => {
    const socket = ask('GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    return Object.assign(socket, { bytes: 0, hasClosed: once(socket, 'close') });
  });
  let isPaused = false;
  for (const socket of reading) {
    socket.on('data', (chunk) => {
      socket.bytes += chunk.length;
      socket.pause();
      setTimeout(() => isPaused || socket.resume(), 5);
    });
    socket.resume();
  }
  await holdsMoreThan(24);
  return {
    pause() {
      isPaused = true;
    },
    async readRest() {
      isPaused = false;
      for (const socket of reading) socket.resume();
      await Promise.all(reading.map(({ hasClosed }) => hasClosed));
      for (const { bytes } of reading) expect(bytes).toBeGreaterThan(page.length);
    },
  };
}
function standStill(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

test('clients that read keep their pages when room is needed just after the node itself stood still', async () => {
  const third = openSocket(node.http.port);
  sockets.push(third);
  await once(third, 'connect');
  const reading = await readTwo();
  const before = pages;
  reading.pause();
  third.write('GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  standStill(2 * limits.answerStallRoomMs);
  const [chunk] = await once(third, 'data');
  expect(pages).toBe(before + 1);
  expect(chunk.toString('latin1')).toContain('HTTP/1.1 503');
  await reading.readRest();
});

test('clients that read keep their pages when a nearly full node itself stood still', async () => {
  const reading = await readTwo();
  using _filled = fill('read', 40);
  reading.pause();
  // The node sees first that nothing is taken for a moment.
  await delay(3 * limits.answerLookMs);
  standStill(limits.answerStallFullMs + limits.answerSweepMs);
  await reading.readRest();
});

test('answers that are not read leave the other half of the budget to bodies', async () => {
  for (let at = 0; at < 4; at += 1) ask(getPage);
  await holdsMoreThan(24);
  await expect.poll(() => node.pipeline.running.size).toBe(0);
  expect(memory.heldBytes('answer')).toBeLessThanOrEqual(memory.maxBytes / 2);
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ padding: 'x'.repeat(1_000_000) });
  const answer = await fetch(`${node.base}/v1/actors`, { method: 'POST', headers, body });
  expect(await answer.text()).not.toContain('overloaded');
});

test('a large answer of a read over Connect is refused while answers hold more than half of the budget', async () => {
  using _filled = fill('answer', 33);
  const url = `${node.base}/svc.v1.HealthService/GetHealth`;
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('MEMORY_BUDGET_MIB')]);
});

test('a node whose budget is full refuses large answers and bodies, and answers small ones', async () => {
  {
    using _filled = fill('read', 64);
    const refused = await fetch(`${node.base}/v1/health`);
    expect(refused.status).toBe(503);
    const error = { code: 'overloaded', details: { bound: 'MEMORY_BUDGET_MIB' } };
    expect(await refused.json()).toMatchObject({ error });
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ padding: 'x'.repeat(100_000) });
    for (const path of ['/v1/actors', '/svc.v1.ActorService/CreateActor']) {
      const answer = await fetch(node.base + path, { method: 'POST', headers, body });
      expect(await answer.text()).toContain('overloaded');
    }
    expect((await fetch(`${node.base}/v1/nothing`)).status).toBe(404);
  }
  expect((await (await fetch(`${node.base}/v1/health`)).text()).length).toBeGreaterThan(page.length);
});
