import { afterEach, expect, test } from 'vitest';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { bearer, listeningNodeForTests, masterId } from '../../../support/listening-node.ts';
import { openSocket } from '../../../support/raw-http.ts';

const KiB = 1024;
const memory = new MemoryBudget(4096 * KiB);

let payloads: string[] = [];
let heldBytes = 0;
let answered = Promise.resolve();
const append = async ({ payload }: { payload: string }) => {
  heldBytes = memory.heldBytes('request');
  payloads.push(payload);
  await answered;
  return { seq: 1n };
};
const node = await listeningNodeForTests({ grpc: false, handlers: { 'MasterService.AppendEvent': append }, memory });
afterEach(async () => {
  payloads = [];
  await expect.poll(() => memory.heldBytes()).toBe(0);
});

const head = [
  `POST /v1/traceledger/master/${masterId}/events HTTP/1.1`,
  'Host: a',
  'Connection: close',
  `Authorization: ${bearer.authorization}`,
  'Content-Type: application/json',
  'Transfer-Encoding: chunked',
].join('\r\n');
const keepAlive = head.replace('Connection: close\r\n', '');
const bodyOf = (payload: string) => `{"event_type":"A","payload":${payload}}`;
const inChunks = (parts: readonly string[]) =>
  parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');

/** The answer to a request whose body comes in these chunks. */
async function send(parts: readonly string[]): Promise<string> {
  const socket = openSocket(node.http.port);
  socket.write(`${head}\r\n\r\n${inChunks(parts)}0\r\n\r\n`);
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text;
}

test('a body of one-byte chunks holds no more than its bytes', async () => {
  const payload = JSON.stringify({ x: Array.from({ length: 20_000 }, (_, at) => at % 10).join('') });
  expect(await send([...bodyOf(payload)])).toContain('HTTP/1.1 200 OK');
  expect(payloads).toEqual([payload]);
  expect(heldBytes).toBe(Math.ceil(bodyOf(payload).length / KiB) * KiB);
});

test('a body of alternating large and small chunks arrives whole', async () => {
  const payload = JSON.stringify({ x: Array.from({ length: 60_000 }, (_, at) => at).join(',') });
  const parts: string[] = [];
  for (let rest = bodyOf(payload), at = 0; rest !== ''; at += 1) {
    const length = [1, 50_000, 3, 700][at % 4] ?? 1;
    parts.push(rest.slice(0, length));
    rest = rest.slice(length);
  }
  expect(await send(parts)).toContain('HTTP/1.1 200 OK');
  expect(payloads).toEqual([payload]);
});

test('a reset within the body of a pipelined request ends its connection and nothing else', async () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException').on('uncaughtException', note);
  const first = Promise.withResolvers<void>();
  answered = first.promise;
  try {
    const socket = openSocket(node.http.port);
    socket.write(`${keepAlive}\r\n\r\n${inChunks([bodyOf('{}')])}0\r\n\r\n`);
    await expect.poll(() => payloads).toEqual(['{}']);
    const heldByFirst = memory.heldBytes('request');
    socket.write(`${head}\r\n\r\n${inChunks(['{"event_type":'])}`);
    await expect.poll(() => memory.heldBytes('request')).toBeGreaterThan(heldByFirst);
    socket.resetAndDestroy();
    await expect.poll(() => memory.heldBytes('request')).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(uncaught).toEqual([]);
  } finally {
    first.resolve();
    answered = Promise.resolve();
    process.off('uncaughtException', note);
    for (const listener of others) process.on('uncaughtException', listener);
  }
});
