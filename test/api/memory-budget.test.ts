import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { budgetBytes } from '../support/budget-bytes.ts';
import { append, newMaster, newOrder, type Order } from '../support/parties.ts';
import { openSocket } from '../support/raw-http.ts';
import { type RunningTestNode, runNode } from '../support/running-node.ts';

let node: RunningTestNode;
let order: Order;

beforeAll(async () => {
  // A node of the suite's own, beside a cluster too.
  node = await runNode({ env: {} });
  order = await newOrder(node.base, { keyed: false });
});
afterAll(() => node[Symbol.asyncDispose]());

test('the metric of the memory budget shows an unfinished body as request, until its connection ends', async () => {
  const headers = { 'content-type': 'application/json', 'content-length': 100_000, ...order.buyer.bearer };
  const unfinished = request(`${node.base}/v1/ledgers`, { method: 'POST', headers }).on('error', () => {});
  unfinished.write(Buffer.alloc(90_000, ' '));
  await expect.poll(() => budgetBytes(node, 'request')).toBeGreaterThanOrEqual(90_000);
  unfinished.destroy();
  await expect.poll(() => budgetBytes(node, 'request')).toBe(0);
});

test('the metric of the memory budget shows pages that nobody takes as answer and read, until their connection ends', async () => {
  const master = await newMaster(order);
  for (let n = 0; n < 40; n += 1) await append(master, order.buyer, 'NOTED', { text: 'x'.repeat(60_000) });
  const socket = openSocket(Number(new URL(node.base).port)).pause();
  const head = `GET /v1/ledgers/${order.ledgerId}/events?limit=1000 HTTP/1.1\r\nHost: a\r\n`;
  socket.write(`${head}Authorization: ${order.buyer.bearer.authorization}\r\n\r\n`.repeat(8));
  for (const kind of ['answer', 'read'] as const)
    await expect.poll(() => budgetBytes(node, kind), { timeout: 10_000 }).toBeGreaterThan(1_000_000);
  socket.destroy();
  for (const kind of ['answer', 'read'] as const)
    await expect.poll(() => budgetBytes(node, kind), { timeout: 10_000 }).toBe(0);
});
