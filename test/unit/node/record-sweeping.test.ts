import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { RecordSweeping } from '../../../src/node/record-sweeping.ts';
import { createLog } from '../../../src/runtime/telemetry/log.ts';
import { ManualClock } from '../../support/clock.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { recordsWith } from '../../support/world.ts';

const startMs = Date.UTC(2026, 10, 21);
const minuteMs = 60_000;

/** Records that expire at these times, and nodes over them. */
async function store(expiries: readonly number[]) {
  const memory = new MemoryRecordStore();
  for (const [at, expiresAt] of expiries.entries())
    await memory.put({ kind: 'k', id: `${at}`, replaces: 'absent', value: '{}', lookups: [], expiresAt });
  const clock = new ManualClock(startMs);
  const calls = { under: 0, most: 0, all: 0, failing: false, gate: null as Promise<void> | null };
  const records = recordsWith(memory, {
    sweep: async (now, limit) => {
      calls.all += 1;
      calls.under += 1;
      calls.most = Math.max(calls.most, calls.under);
      try {
        await calls.gate;
        if (calls.failing) throw new Error('the store is gone');
        return await memory.sweep(now, limit);
      } finally {
        calls.under -= 1;
      }
    },
  });
  const logged: string[] = [];
  const log = createLog('info', { write: (line) => void logged.push(line) });
  const node = (isSweeper: () => boolean = () => true) => {
    const registry = new Registry();
    const sweeping = new RecordSweeping({ records, clock, log, registry, isSweeper });
    const behind = async () =>
      Number(/^svc_sweep_behind_seconds (\S+)$/m.exec(await registry.metrics())?.[1] ?? Number.NaN);
    return { sweeping, behind };
  };
  const left = async () => (await memory.sweep(clock.now(), 0)).oldestLeft;
  return { clock, calls, logged, node, left };
}

const expired = (count: number, atMs = startMs - minuteMs) => Array.from({ length: count }, () => atMs);

test('however many have run out, they are gone within a minute or two, a bounded number at a time', async () => {
  const { clock, calls, node, left } = await store(expired(20_000));
  node();
  await clock.advance(minuteMs + 10_000);
  expect(await left()).toBeNull();
  expect(calls.all).toBeGreaterThanOrEqual(20_000 / 1_000);
  expect(calls.most).toBe(1);
});

test('where nothing has run out it is looked for once a minute', async () => {
  const { clock, calls, node } = await store([startMs + 60 * minuteMs]);
  node();
  await clock.advance(10 * minuteMs);
  expect(calls.all).toBe(10);
});

test('the gauge tells how old what is left may be, and grows while the store fails', async () => {
  const { clock, calls, node, logged } = await store([...expired(3, startMs - 600_000), ...expired(3, startMs)]);
  const { behind } = node();
  expect(await behind()).toBe(0);
  calls.failing = true;
  await clock.advance(10 * minuteMs);
  expect(await behind()).toBe(600);
  expect(logged).toHaveLength(10);
  calls.failing = false;
  await clock.advance(minuteMs);
  expect(await behind()).toBe(0);
  await clock.advance(30_000);
  expect(await behind()).toBe(30);
});

test('the gauge tells the age of the oldest while there are more than one go removes', async () => {
  const { clock, calls, node } = await store([...expired(250, startMs - 600_000), ...expired(10, startMs - 300_000)]);
  const { behind } = node();
  const gate = Promise.withResolvers<void>();
  await clock.advance(minuteMs);
  calls.gate = gate.promise;
  expect(await behind()).toBe(360);
  await clock.advance(minuteMs);
  expect(await behind()).toBe(420);
  calls.gate = null;
  gate.resolve();
  await clock.advance(1);
  expect(await behind()).toBeLessThan(61);
});

test('of several nodes the one whose turn it is does it, and the next one where it is gone', async () => {
  const { clock, calls, node, left } = await store(expired(400));
  let owner = 'one';
  const one = node(() => owner === 'one');
  const two = node(() => owner === 'two');
  owner = 'nobody';
  await clock.advance(5 * minuteMs);
  expect(calls.all).toBe(0);
  owner = 'two';
  await clock.advance(minuteMs + 1_000);
  expect(calls.all).toBe(2);
  expect(await left()).toBeNull();
  expect(await one.behind()).toBe(0);
  expect(await two.behind()).toBeLessThan(60);
});

test('what cannot be removed is not tried again all the time', async () => {
  const { clock, calls, node } = await store([]);
  node();
  calls.failing = true;
  await clock.advance(3 * minuteMs);
  expect(calls.all).toBe(3);
});

test('stopping waits for what is under way, and nothing comes after it', async () => {
  const { clock, calls, node } = await store(expired(1_000));
  const { sweeping } = node();
  const gate = Promise.withResolvers<void>();
  calls.gate = gate.promise;
  await clock.advance(minuteMs);
  let stopped = false;
  const stopping = sweeping[Symbol.asyncDispose]().then(() => {
    stopped = true;
  });
  await clock.advance(minuteMs);
  expect(stopped).toBe(false);
  gate.resolve();
  await stopping;
  await clock.advance(10 * minuteMs);
  expect(calls.all).toBe(1);
  expect(clock.timers).toBe(0);
});
