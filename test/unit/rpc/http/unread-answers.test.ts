import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { type ListeningNode, startListeningNode } from '../../../support/listening-node.ts';

const MiB = 1024 * 1024;
const memory = new MemoryBudget(64 * MiB);
/** A page that no kernel buffer takes whole. */
const page = 'x'.repeat(15 * MiB);
const rpcPath = '/svc.v1.SandboxService/RunSandbox';

let node: ListeningNode;
/** How many lines of the stream were taken. */
let lines = 0;
/** Added to the time at which connections are looked over. */
let aheadMs = 0;
beforeAll(async () => {
  node = await startListeningNode({
    grpc: false,
    handlers: {
      'HealthService.GetHealth': async () => ({ status: page }),
      'SandboxService.RunSandbox': async function* () {
        for (;;) {
          lines += 1;
          yield { line: 'y'.repeat(64 * 1024) };
        }
      },
    },
    memory,
    monotonicMs: () => performance.now() + aheadMs,
  });
});
afterAll(() => node[Symbol.asyncDispose]());

const sockets: Socket[] = [];
afterEach(async () => {
  aheadMs = 0;
  for (const socket of sockets.splice(0)) socket.destroy();
  // Whatever happened to a connection, nothing stays counted for it, and no call goes on.
  await expect.poll(() => memory.heldBytes()).toBe(0);
  await expect.poll(() => node.pipeline.running.size).toBe(0);
});

function ask(request: string): Socket {
  const socket = connect(node.http.port, '127.0.0.1').on('error', () => {});
  sockets.push(socket);
  socket.pause().write(request);
  return socket;
}
/** Waits until the node has ended what waits for clients, and the connection, which nobody has read from until then. */
async function ended(socket: Socket): Promise<void> {
  await expect.poll(() => memory.heldBytes('answer')).toBe(0);
  await once(socket.resume(), 'close');
}
const getPage = 'GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n';
const emptyMessage = Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]).toString('latin1');

test('an answer that waits for its client counts in the memory budget until the client has gone', async () => {
  const socket = ask(getPage);
  await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(8 * MiB);
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
])('%s of which nobody takes anything ends with its connection', async (_name, request) => {
  lines = 0;
  const socket = ask(request);
  await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(0);
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

test('a node that is nearly full ends answers of which nobody takes anything much sooner', async () => {
  const [one, two] = [ask(getPage), ask(getPage)];
  await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(24 * MiB);
  memory.add('read', 34 * MiB);
  try {
    await delay(limits.answerSweepMs + 100);
    aheadMs = limits.answerStallFullMs;
    await ended(one);
    await ended(two);
  } finally {
    memory.release('read', 34 * MiB);
  }
});

test('a node that is nearly full ends who holds most, and nobody else once a quarter of the budget is free', async () => {
  const small = ask('GET /v1/sandbox/run HTTP/1.1\r\nHost: a\r\n\r\n');
  await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(0);
  const large = ask(getPage);
  await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(12 * MiB);
  memory.add('read', 35 * MiB);
  try {
    await delay(limits.answerSweepMs + 300);
    aheadMs = limits.answerStallFullMs;
    await expect.poll(() => memory.heldBytes('answer'), { timeout: 5_000 }).toBeLessThan(MiB);
    await once(large.resume(), 'close');
    await delay(limits.answerSweepMs + 100);
    expect(memory.heldBytes('answer')).toBeGreaterThan(0);
    expect(small.destroyed).toBe(false);
    aheadMs = limits.answerStallMs;
    await ended(small);
  } finally {
    memory.release('read', 35 * MiB);
  }
});

test('answers alone that nobody reads end sooner too, once they fill three quarters of their half', async () => {
  const asked = [ask(getPage), ask(getPage)];
  await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(24 * MiB);
  await delay(limits.answerSweepMs + 100);
  aheadMs = limits.answerStallFullMs;
  await expect.poll(() => memory.heldBytes('answer'), { timeout: 5_000 }).toBeLessThan(24 * MiB);
  await delay(limits.answerSweepMs + 100);
  // One was enough.
  expect(memory.heldBytes('answer')).toBeGreaterThan(8 * MiB);
  expect(asked.map(({ destroyed }) => destroyed)).toEqual([false, false]);
});

test('pages that nobody reads, asked for again and again, keep no reader from its pages', async () => {
  let most = 0;
  const watching = setInterval(() => {
    most = Math.max(most, memory.heldBytes('answer'));
  }, 1);
  const asking = setInterval(() => ask(getPage), 4 * limits.answerStallRoomMs);
  const lengths: number[] = [];
  try {
    for (let at = 0; at < 4; at += 1) ask(getPage);
    await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(24 * MiB);
    for (let at = 0; at < 8; at += 1) {
      await delay(limits.answerStallRoomMs + 2 * limits.answerLookMs);
      const answer = await fetch(`${node.base}/v1/health`);
      expect(answer.status).toBe(200);
      lengths.push((await answer.text()).length);
    }
  } finally {
    clearInterval(asking);
    clearInterval(watching);
  }
  expect(Math.min(...lengths)).toBeGreaterThan(page.length);
  expect(most).toBeLessThanOrEqual(memory.maxBytes / 2 + MiB);
});

test('who reads slowly keeps its page when there must be room: who has taken nothing for long ends', async () => {
  const slow = ask('GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const closed = once(slow, 'close');
  let bytes = 0;
  slow.on('data', (chunk) => {
    bytes += chunk.length;
    slow.pause();
    setTimeout(() => slow.resume(), 5);
  });
  slow.resume();
  await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(8 * MiB);
  ask(getPage);
  await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(24 * MiB);
  await delay(limits.answerStallRoomMs + 2 * limits.answerLookMs);
  // The page is still being read, so that there is room for no third one.
  expect(memory.heldBytes('answer')).toBeGreaterThan(24 * MiB);
  expect((await (await fetch(`${node.base}/v1/health`)).text()).length).toBeGreaterThan(page.length);
  await closed;
  expect(bytes).toBeGreaterThan(page.length);
});

test('a connection with more than its part of what answers may hold is refused its next large read', async () => {
  const greedy = ask(`${getPage.repeat(3)}GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(24 * MiB);
  await expect.poll(() => node.pipeline.running.size).toBe(0);
  expect(memory.heldBytes('answer')).toBeLessThanOrEqual(memory.maxBytes / 2);
  let text = '';
  greedy.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  await once(greedy.resume(), 'close');
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);
  expect(statuses).toEqual(['200', '200', '503', '503']);
});

test('answers that nobody reads leave the other half of the budget to bodies', async () => {
  for (let at = 0; at < 4; at += 1) ask(getPage);
  await expect.poll(() => memory.heldBytes('answer')).toBeGreaterThan(24 * MiB);
  await expect.poll(() => node.pipeline.running.size).toBe(0);
  expect(memory.heldBytes('answer')).toBeLessThanOrEqual(memory.maxBytes / 2);
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ padding: 'x'.repeat(1_000_000) });
  const answer = await fetch(`${node.base}/v1/actors`, { method: 'POST', headers, body });
  expect(await answer.text()).not.toContain('overloaded');
});

test('a large answer of a read over Connect is refused while answers hold more than half of the budget', async () => {
  memory.add('answer', 33 * MiB);
  try {
    const headers = { 'content-type': 'application/json' };
    const url = `${node.base}/svc.v1.HealthService/GetHealth`;
    const answer = await fetch(url, { method: 'POST', headers, body: '{}' });
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('MEMORY_BUDGET_MIB')]);
  } finally {
    memory.release('answer', 33 * MiB);
  }
});

test('a node that holds as much as it may refuses large answers and bodies, and answers small ones', async () => {
  memory.add('read', 64 * MiB);
  try {
    const refused = await fetch(`${node.base}/v1/health`);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({
      error: { code: 'overloaded', details: { bound: 'MEMORY_BUDGET_MIB' } },
    });
    const headers = { 'content-type': 'application/json' };
    for (const path of ['/v1/actors', '/svc.v1.ActorService/CreateActor']) {
      const body = await (await fetch(node.base + path, { method: 'POST', headers, body: '{}' })).text();
      expect(body).toContain('overloaded');
    }
    expect((await fetch(`${node.base}/v1/nothing`)).status).toBe(404);
  } finally {
    memory.release('read', 64 * MiB);
  }
  expect((await (await fetch(`${node.base}/v1/health`)).text()).length).toBeGreaterThan(page.length);
});
