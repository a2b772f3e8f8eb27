import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { datedAppends } from '../../../src/node/dated-appends.ts';
import { watchClock } from '../../../src/runtime/clock/clock-watch.ts';
import { goodClock, PlausibleClock } from '../../../src/runtime/clock/plausible-clock.ts';
import { StartError } from '../../../src/runtime/start-error.ts';
import type { Log } from '../../../src/runtime/telemetry/log.ts';
import { ManualClock } from '../../support/clock.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';
import { append, eventsOf, newMaster, newOrder } from '../../support/parties.ts';
import { runFaultyNode } from '../../support/running-node-faulty.ts';

const goodMs = Date.UTC(2026, 10, 21);
const badTimes = [
  ['1970', 0],
  ['11026', 285_800_000_000_000],
  ['no date at all', 9e15],
] as const;

test.each(badTimes)('a node with the machine time %s does not start and says what to do', (_year, timeMs) => {
  const start = () => goodClock(new ManualClock(timeMs));
  expect(start).toThrow(StartError);
  expect(start).toThrow(
    /^The node does not start: the clock of this machine is out of range \(.*\): set it, and mend time synchronisation\.$/,
  );
});

test.each(badTimes)(
  'a clock that is set to %s continues from its last good time until the machine is right',
  (_year, timeMs) => {
    const wall = new ManualClock(goodMs);
    let monotonicMs = 0;
    const clock = new PlausibleClock(wall, () => monotonicMs);
    expect(clock.now()).toBe(goodMs);
    wall.jump(timeMs - goodMs);
    monotonicMs = 5_000;
    expect(clock.now()).toBe(goodMs + 5_000);
    wall.jump(goodMs + 7_000 - timeMs);
    monotonicMs = 6_000;
    expect(clock.now()).toBe(goodMs + 7_000);
  },
);

test('each time out of range is logged once', async () => {
  const clock = new ManualClock(goodMs);
  let machineMs = goodMs;
  const lines: string[] = [];
  const keep = (_fields: object, message: string) => void lines.push(message);
  const log = { warn: keep, error: keep } as unknown as Log;
  watchClock({ clock, machine: { now: () => machineMs }, log, registry: new Registry() });
  for (const timeMs of [0, 0, goodMs, 285_800_000_000_000]) {
    machineMs = timeMs;
    await clock.advance(10_000);
  }
  const offs = lines.filter((line) => line.includes('out of range'));
  expect(offs.map((line) => /the year \d+/.exec(line)?.[0])).toEqual(['the year 1970', 'the year 11026']);
});

test('claims and appends are refused while the clock is out of range', async () => {
  let isGood = false;
  const store = datedAppends(new MemoryLedgerStore(() => goodMs), () => isGood);
  await expect(store.claim('ledger')).rejects.toMatchObject({ code: 'unavailable' });
  isGood = true;
  expect((await store.claim('ledger')).head).toBeNull();
});

test('a node in the year 11026 refuses appends as unavailable, serves reads, and recovers', async () => {
  let isOff = false;
  const machine = { now: () => (isOff ? 285_800_000_000_000 : Date.now()) };
  await using node = await runFaultyNode({ machine });
  const order = await newOrder(node.base);
  const master = await newMaster(order);
  isOff = true;
  const refused = await append(master, order.buyer, 'NOTED', { n: 1 });
  expect([refused.status, refused.code]).toEqual([503, 'unavailable']);
  expect(JSON.stringify(refused.body)).toContain('the clock of this node is out of range');
  expect((await eventsOf(node.base, order.supplier, order.ledgerId)).length).toBeGreaterThan(0);
  isOff = false;
  expect((await append(master, order.buyer, 'NOTED', { n: 2 })).status).toBe(200);
});
