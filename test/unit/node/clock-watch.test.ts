import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { watchClock } from '../../../src/runtime/clock/clock-watch.ts';
import type { Log } from '../../../src/runtime/telemetry/log.ts';
import { ManualClock } from '../../support/clock.ts';

/** `set` sets the machine's clock: so much ahead of the node's, or, below zero, behind. */
function watched() {
  const clock = new ManualClock(Date.UTC(2026, 10, 21));
  let offMs = 0;
  const set = (byMs: number) => {
    offMs = byMs;
  };
  const machine = { now: () => clock.now() + offMs };
  const lines: object[] = [];
  const registry = new Registry();
  const log = { warn: (fields: object) => void lines.push(fields) } as unknown as Log;
  const end = watchClock({ clock, machine, log, registry });
  const gauge = async () => (await registry.getSingleMetric('svc_clock_ahead_seconds')?.get())?.values[0]?.value;
  return { clock, set, lines, end, gauge };
}

test('a machine’s clock that was set back is told once until it has caught up, and again the next time', async () => {
  const { clock, set, lines, gauge } = watched();
  await clock.advance(60_000);
  expect([lines, await gauge()]).toEqual([[], 0]);
  set(-3_600_000);
  expect(await gauge()).toBe(3_600);
  await clock.advance(60_000);
  expect(lines).toEqual([{ ahead_ms: 3_600_000 }]);
  set(0);
  await clock.advance(20_000);
  expect([lines.length, await gauge()]).toEqual([1, 0]);
  set(-7_000);
  await clock.advance(20_000);
  expect(lines).toEqual([{ ahead_ms: 3_600_000 }, { ahead_ms: 7_000 }]);
});

test('a few seconds, and a machine that is ahead, are no line in the log', async () => {
  const { clock, set, lines, gauge } = watched();
  set(-5_000);
  await clock.advance(20_000);
  expect([lines, await gauge()]).toEqual([[], 5]);
  set(3_600_000);
  await clock.advance(20_000);
  expect([lines, await gauge()]).toEqual([[], 0]);
});

test('once it has ended nothing is looked at any more', async () => {
  const { clock, set, lines, end } = watched();
  await clock.advance(20_000);
  end();
  set(-3_600_000);
  await clock.advance(60_000);
  expect([lines, clock.timers]).toEqual([[], 0]);
});
