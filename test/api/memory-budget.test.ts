import type { Socket } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { openSocket } from '../support/raw-http.ts';
import { runNode } from '../support/running-node.ts';

const node = await runNode({ env: { MEMORY_BUDGET_MIB: '64' } });
afterAll(() => node[Symbol.asyncDispose]());
const order = await newOrder(node.base, { keyed: false });
const master = await newMaster(order);
// More than a page of 2 MiB.
for (let n = 0; n < 12; n += 1) await append(master, order.buyer, 'LARGE', { n, text: 'x'.repeat(240_000) });

/** The bytes of the node's memory budget by kind, as its metrics have them. */
async function held(): Promise<Record<string, number>> {
  const metrics = await (await fetch(`${node.opsBase}/metrics`)).text();
  const found = [...metrics.matchAll(/^svc_memory_budget_bytes\{kind="(\w+)"\} (\d+)$/gm)];
  return Object.fromEntries(found.map(([, kind = '', bytes]) => [kind, Number(bytes)]));
}

/** What callers hold: neither what lies behind answers, nor the bound. */
async function heldForCallers(): Promise<Record<string, number>> {
  const kinds = Object.entries(await held()).filter(([kind, bytes]) => kind !== 'queue' && kind !== 'max' && bytes > 0);
  return Object.fromEntries(kinds);
}

const KiB = 1_024;
const eventsPath = `/v1/ledgers/${order.ledgerId}/events`;
const head = (line: string) => `${line} HTTP/1.1\r\nHost: a\r\n`;
const get = (path: string) =>
  `${head(`GET ${path}`)}${Object.entries(order.buyer.bearer).map(([name, value]) => `${name}: ${value}\r\n`)}\r\n`;

test('the metrics of a running node name the bound of its memory budget', async () => {
  expect((await held()).max).toBe(64 * KiB * KiB);
});

test.each([
  ['a client that does not read four pages', 'answer', get(eventsPath).repeat(4), 1_000 * KiB],
  [
    'a body that does not end',
    'request',
    `${head('POST /v1/developer/register')}Content-Length: 900000\r\n\r\n${' '.repeat(500_000)}`,
    488 * KiB,
  ],
  [
    'a call with a large head',
    'call',
    `${head('POST /v1/developer/register')}X-Large: ${'x'.repeat(10_000)}\r\nContent-Length: 10\r\n\r\n{`,
    14_000,
  ],
  ['a stream that follows a ledger from its first event', 'read', get(`${eventsPath}/follow?after_seq=0`), 2_000 * KiB],
])('the metrics of a running node show what is held for %s, as kind "%s"', async (_name, kind, request, atLeast) => {
  await expect.poll(heldForCallers).toEqual({});
  const socket: Socket = openSocket(Number(new URL(node.base).port));
  if (kind === 'answer') socket.pause();
  else socket.resume();
  socket.write(request);
  try {
    await expect.poll(async () => (await heldForCallers())[kind] ?? 0).toBeGreaterThanOrEqual(atLeast);
  } finally {
    socket.destroy();
  }
  await expect.poll(heldForCallers).toEqual({});
});
