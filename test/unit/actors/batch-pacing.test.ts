import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BatchNeed, BatchPacing, unpaced } from '../../../src/actors/batching/batch-pacing.ts';
import { batchTickMs } from '../../../src/actors/bounds.ts';
import type { Clock } from '../../../src/runtime/clock/clock.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { startMs } from '../../support/world.ts';

const freeMax = 8;
const waitMaxMs = 100;
const quietMs = 60;

/** The pacing of a node, and the order in which turns began. */
function pacingUnderTest({ isSaturated = (): boolean => true, offMs = (): number => 0 } = {}) {
  const clock = new ManualClock(startMs);
  const machine: Clock = { now: () => clock.now() + offMs(), after: (delayMs, run) => clock.after(delayMs, run) };
  const pacing = new BatchPacing(machine, { ...unpaced, freeMax, waitMaxMs, quietMs, isSaturated });
  const begun: number[] = [];
  let asked = 0;
  const ask = (need: () => BatchNeed = () => 'more'): void => {
    const turn = asked++;
    const wait = pacing.begin(need);
    if (wait === undefined) begun.push(turn);
    else void wait.then(() => begun.push(turn));
  };
  const fill = (): void => {
    for (let at = 0; at < freeMax; at += 1) ask();
  };
  return { clock, pacing, begun, ask, fill };
}

describe('turns of a saturated node', () => {
  test('begin at once up to their number, and leave no timer', () => {
    const { clock, begun, fill } = pacingUnderTest();
    fill();
    expect(begun).toHaveLength(freeMax);
    expect(clock.timers).toBe(0);
  });

  test('wait beyond it, for so long and no longer; one that came later waits as long', async () => {
    const { clock, begun, ask, fill } = pacingUnderTest();
    fill();
    ask();
    await clock.advance(batchTickMs);
    ask();
    await clock.advance(waitMaxMs - 2 * batchTickMs);
    expect(begun).toHaveLength(freeMax);
    await clock.advance(batchTickMs);
    expect(begun.slice(freeMax)).toEqual([freeMax]);
    await clock.advance(batchTickMs);
    expect(begun.slice(freeMax)).toEqual([freeMax, freeMax + 1]);
    expect(clock.timers).toBe(0);
  });

  test('go on waiting though others end, as long as those that run or wait are more than their number', async () => {
    const { clock, pacing, begun, ask, fill } = pacingUnderTest();
    fill();
    ask();
    ask();
    pacing.end();
    await clock.advance(batchTickMs);
    expect(begun).toHaveLength(freeMax);
    pacing.end();
    await clock.advance(batchTickMs);
    expect(begun.slice(freeMax)).toEqual([freeMax, freeMax + 1]);
  });

  test('that need nothing more begin as soon as fewer than their number run, however many wait', async () => {
    const { clock, pacing, begun, ask, fill } = pacingUnderTest();
    fill();
    for (let turn = 0; turn < freeMax; turn += 1) ask();
    let need: BatchNeed = 'more';
    ask(() => need);
    const late = 2 * freeMax;
    need = 'nothing';
    await clock.advance(batchTickMs);
    expect(begun).not.toContain(late);
    pacing.end();
    await settled();
    expect(begun.slice(freeMax)).toEqual([late]);
    pacing.end();
    ask(() => 'nothing');
    expect(begun.slice(freeMax)).toEqual([late, late + 1]);
  });

  test('that come to need nothing more begin with the tick, together, as many as may run', async () => {
    const { clock, pacing, begun, ask, fill } = pacingUnderTest();
    fill();
    const needs: BatchNeed[] = Array.from({ length: freeMax + 2 }, () => 'more');
    for (const at of needs.keys()) ask(() => needs[at] ?? 'more');
    for (let ended = 0; ended < 3; ended += 1) pacing.end();
    await settled();
    expect(begun).toHaveLength(freeMax);
    await clock.advance(batchTickMs / 2);
    needs.fill('nothing', 1);
    await clock.advance(batchTickMs / 2);
    expect(begun.slice(freeMax)).toEqual([freeMax + 1, freeMax + 2, freeMax + 3]);
  });

  test('that need nothing more begin one by one as others end, first come first served, and not while too many run', async () => {
    const { pacing, begun, ask, fill } = pacingUnderTest();
    fill();
    ask(() => 'haste');
    for (let turn = 0; turn < 3; turn += 1) ask(() => 'nothing');
    const first = freeMax + 1;
    pacing.end();
    await settled();
    expect(begun).toHaveLength(first);
    pacing.end();
    await settled();
    expect(begun.slice(first)).toEqual([first]);
    pacing.end();
    await settled();
    expect(begun.slice(first)).toEqual([first, first + 1]);
  });

  test('that need more wait behind others that wait, though few run', async () => {
    const { clock, pacing, begun, ask, fill } = pacingUnderTest();
    fill();
    for (let turn = 0; turn < freeMax; turn += 1) ask();
    for (let ended = 0; ended < freeMax; ended += 1) pacing.end();
    ask();
    expect(begun).toHaveLength(freeMax);
    await clock.advance(waitMaxMs);
    expect(begun).toHaveLength(2 * freeMax + 1);
  });

  test('that need nothing more wait for no longer than the others where too many run', async () => {
    const { clock, begun, ask, fill } = pacingUnderTest();
    fill();
    ask(() => 'nothing');
    await clock.advance(waitMaxMs - batchTickMs);
    expect(begun).toHaveLength(freeMax);
    await clock.advance(batchTickMs);
    expect(begun).toHaveLength(freeMax + 1);
  });

  test('whose end is waited for begin at once, or with the next tick, and count', async () => {
    const { clock, begun, ask, fill } = pacingUnderTest();
    fill();
    ask(() => 'haste');
    expect(begun).toHaveLength(freeMax + 1);
    let need: BatchNeed = 'more';
    ask(() => need);
    need = 'haste';
    await clock.advance(batchTickMs);
    expect(begun).toHaveLength(freeMax + 2);
    ask(() => 'nothing');
    expect(begun).toHaveLength(freeMax + 2);
  });

  test('wait for so many ticks where the clock is put back', async () => {
    let offMs = 0;
    const { clock, begun, ask, fill } = pacingUnderTest({ offMs: () => offMs });
    fill();
    ask();
    offMs = -60_000;
    await clock.advance(waitMaxMs - batchTickMs);
    expect(begun).toHaveLength(freeMax);
    await clock.advance(batchTickMs);
    expect(begun).toHaveLength(freeMax + 1);
  });

  test('begin by the clock where ticks come late', async () => {
    const { clock, begun, ask, fill } = pacingUnderTest();
    fill();
    ask();
    clock.jump(waitMaxMs);
    await clock.advance(0);
    expect(begun).toHaveLength(freeMax + 1);
  });

  test('whatever comes and goes, all begin, and none waits for longer than it may', async () => {
    const needs = ['more', 'nothing', 'haste'] as const;
    const step = fc.constantFrom('ask', 'ask', 'end', 'pass', 'pass', 'busy', 'idle', 'change');
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(step, fc.nat(40)), { maxLength: 120 }), async (steps) => {
        let isSaturated = true;
        const { clock, pacing, begun, ask, fill } = pacingUnderTest({ isSaturated: () => isSaturated });
        const askedAt: number[] = [];
        const needed: BatchNeed[] = [];
        let ended = 0;
        let overdue = 0;
        for (const [kind, number] of steps) {
          const need = needs[number % needs.length] ?? 'more';
          if (kind === 'ask') {
            const turn = askedAt.push(clock.now()) - 1;
            needed[turn] = need;
            ask(() => needed[turn] ?? 'more');
          } else if (kind === 'change' && askedAt.length > 0) needed[number % askedAt.length] = need;
          else if (kind === 'end' && ended < begun.length) {
            ended += 1;
            pacing.end();
          } else if (kind === 'pass') await clock.advance(number);
          else if (kind === 'busy') isSaturated = true;
          else if (kind === 'idle') isSaturated = false;
          await settled();
          const waiting = askedAt.filter((_, turn) => !begun.includes(turn));
          overdue += waiting.filter((at) => clock.now() - at >= waitMaxMs + batchTickMs).length;
        }
        await clock.advance(waitMaxMs + batchTickMs);
        expect(begun.toSorted((a, b) => a - b)).toEqual(askedAt.map((_, turn) => turn));
        expect(overdue).toBe(0);
        expect(clock.timers).toBe(0);
        // All that was counted is counted off again.
        for (; ended < begun.length; ended += 1) pacing.end();
        isSaturated = true;
        const before = begun.length;
        fill();
        expect(begun).toHaveLength(before + freeMax);
        ask();
        expect(begun).toHaveLength(before + freeMax);
      }),
    );
  });
});

describe('turns of a node that has time to spare', () => {
  test('begin at once, however many', () => {
    let isBusy = false;
    const { clock, begun, ask, fill } = pacingUnderTest({ isSaturated: () => isBusy });
    fill();
    ask();
    expect(begun).toHaveLength(freeMax + 1);
    expect(clock.timers).toBe(0);
    isBusy = true;
    ask();
    expect(begun).toHaveLength(freeMax + 1);
  });

  test('begin with the next tick where they had to wait', async () => {
    let isBusy = true;
    const { clock, begun, ask, fill } = pacingUnderTest({ isSaturated: () => isBusy });
    fill();
    ask();
    ask();
    isBusy = false;
    await clock.advance(batchTickMs);
    expect(begun).toHaveLength(freeMax + 2);
    expect(clock.timers).toBe(0);
  });
});
