import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { bearer, type ListeningNode, masterId, startListeningNode } from '../../../support/listening-node.ts';

const KiB = 1024;
const memory = new MemoryBudget(4096 * KiB);

let node: ListeningNode;
let payloads: string[] = [];
let heldBytes = 0;
beforeAll(async () => {
  const append = async ({ payload }: { payload: string }) => {
    heldBytes = memory.heldBytes('request');
    payloads.push(payload);
    return { seq: 1n };
  };
  node = await startListeningNode({ grpc: false, handlers: { 'MasterService.AppendEvent': append }, memory });
});
afterAll(() => node[Symbol.asyncDispose]());
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
const bodyOf = (payload: string) => `{"event_type":"A","payload":${payload}}`;
const inChunks = (parts: readonly string[]) =>
  parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');

/** The answer to a request whose body comes in these chunks. */
async function send(parts: readonly string[]): Promise<string> {
  const socket = connect(node.http.port, '127.0.0.1').on('error', () => {});
  socket.write(`${head}\r\n\r\n${inChunks(parts)}0\r\n\r\n`);
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text;
}

test('a body of one-byte chunks holds what its bytes are, however many chunks they come in', async () => {
  const payload = JSON.stringify({ x: Array.from({ length: 20_000 }, (_, at) => at % 10).join('') });
  expect(await send([...bodyOf(payload)])).toContain('HTTP/1.1 200 OK');
  expect(payloads).toEqual([payload]);
  expect(heldBytes).toBe(Math.ceil(bodyOf(payload).length / KiB) * KiB);
});

test('a body of large and small chunks in turn arrives whole', async () => {
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
