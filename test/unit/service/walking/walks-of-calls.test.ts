import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import {
  bearer,
  type ListeningNode,
  type ListeningNodeOptions,
  ledgerId,
  otherKey,
  startListeningNode,
} from '../../../support/listening-node.ts';

const mib = 1024 * 1024;
const path = `/v1/ledgers/${ledgerId}/events`;
const other = { authorization: `Bearer ${otherKey}` };
const answer = { ledgerId, count: 0, integrity: { verified: true, issues: [] }, events: [] };

let node: ListeningNode;
afterEach(() => node[Symbol.asyncDispose]());

/** A node whose event lists read pages of 500 entries until they are let go; `pages` counts them by caller. */
async function nodeOf(options: Omit<ListeningNodeOptions, 'handlers'>, keptChars = 0) {
  const pages = new Map<string, number>();
  const ended: string[] = [];
  let letGo = false;
  const read = async (_: unknown, call: Call) => {
    const actor = call.caller?.actorId ?? '';
    try {
      do {
        await call.walk.readPage(
          async () => pages.set(actor, (pages.get(actor) ?? 0) + 1),
          () => ({ count: 500, chars: 0 }),
        );
        call.walk.keep(keptChars);
        await setTimeout(1);
      } while (!letGo);
      return answer;
    } finally {
      ended.push(actor);
    }
  };
  node = await startListeningNode({ grpc: false, ...options, handlers: { 'LedgerService.ListLedgerEvents': read } });
  const list = (headers: Record<string, string>, signal?: AbortSignal) =>
    fetch(`${node.base}${path}`, { headers, ...(signal === undefined ? {} : { signal }) });
  return {
    list,
    pages: () => [...pages.values()].reduce((sum, count) => sum + count, 0),
    callers: () => pages.size,
    ended,
    letGo: () => {
      letGo = true;
    },
  };
}

test('a read ends when its caller hangs up, and who waits gets its place', async () => {
  const { list, pages, callers, ended, letGo } = await nodeOf({ reads: { perCaller: 1, total: 1, waiting: 9 } });
  const hangUp = new AbortController();
  const first = list(bearer, hangUp.signal).catch(() => 'gone');
  await expect.poll(pages).toBeGreaterThan(0);
  const second = list(other);
  await setTimeout(50);
  expect(callers()).toBe(1);
  hangUp.abort();
  expect(await first).toBe('gone');
  await expect.poll(() => ended.length).toBe(1);
  await expect.poll(callers).toBe(2);
  letGo();
  expect((await second).status).toBe(200);
});

test('a read ends at the deadline of its call, while its caller still waits', async () => {
  const { pages, ended } = await nodeOf({});
  const answer = await fetch(`${node.base}/svc.v1.LedgerService/ListLedgerEvents`, {
    method: 'POST',
    headers: { ...bearer, 'content-type': 'application/json', 'connect-timeout-ms': '100' },
    body: JSON.stringify({ ledgerId }),
  });
  expect(await answer.json()).toMatchObject({ code: 'unavailable' });
  expect(pages()).toBeGreaterThan(0);
  await expect.poll(() => ended.length).toBe(1);
});

test('a read that waits ends when its caller hangs up, and never begins', async () => {
  const { list, pages, ended, letGo } = await nodeOf({ reads: { perCaller: 1, total: 1, waiting: 9 } });
  const first = list(bearer);
  await expect.poll(pages).toBeGreaterThan(0);
  const hangUp = new AbortController();
  const waiting = list(bearer, hangUp.signal).catch(() => 'gone');
  await setTimeout(50);
  hangUp.abort();
  expect(await waiting).toBe('gone');
  await expect.poll(() => ended.length).toBe(1);
  letGo();
  expect((await first).status).toBe(200);
});

test('a read that there is no room to wait for is refused as overloaded', async () => {
  const { list, pages, letGo } = await nodeOf({ reads: { perCaller: 1, total: 1, waiting: 1 } });
  const first = list(bearer);
  await expect.poll(pages).toBeGreaterThan(0);
  const waiting = list(bearer);
  await setTimeout(50);
  const refused = await list(bearer);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await refused.json()).toMatchObject({ error: { code: 'overloaded' } });
  letGo();
  expect([(await first).status, (await waiting).status]).toEqual([200, 200]);
});

test('a read is refused as overloaded where the memory budget has no room for it, and gives back what it held', async () => {
  const memory = new MemoryBudget(20 * mib);
  const { list } = await nodeOf({ memory }, mib);
  const refused = await list(bearer);
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({
    error: { code: 'overloaded', details: { bound: 'MEMORY_BUDGET_MIB' } },
  });
  await expect.poll(() => memory.heldBytes()).toBe(0);
});

test.each([1_000, 100_001])(
  'what a read holds is released once its answer was handed over: pages of %i characters',
  async (chars) => {
    const memory = new MemoryBudget(200 * mib);
    const { list, pages, letGo } = await nodeOf({ memory }, chars);
    const reading = list(bearer);
    await expect.poll(pages).toBeGreaterThan(2);
    expect(memory.heldBytes('read')).toBeGreaterThan(4 * mib);
    letGo();
    expect((await reading).status).toBe(200);
    await expect.poll(() => memory.heldBytes()).toBe(0);
  },
);

test('a read takes from its caller’s rate what it examined, and other callers notice nothing', async () => {
  const { list, pages, letGo } = await nodeOf({ rates: { call: { perSecond: 1, burst: 10 } } });
  const reading = list(bearer);
  await expect.poll(pages).toBeGreaterThan(29);
  letGo();
  expect((await reading).status).toBe(200);
  const next = await list(bearer);
  expect(next.status).toBe(429);
  // 10 tokens less one for the call and one for each of 30 pages or more.
  expect(Number(next.headers.get('retry-after'))).toBeGreaterThan(20);
  expect((await list(other)).status).toBe(200);
});
