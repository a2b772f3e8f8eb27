import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { batchEventsMax, turnTickMs } from '../../src/actors/bounds.ts';
import { TurnSlots } from '../../src/actors/turn-slots.ts';
import { ManualClock, settled } from '../support/clock.ts';
import { append, createMaster, openLedger, uuid } from '../support/commands.ts';
import { rig, startMs, storeWith } from '../support/world.ts';

const atOnceMax = 8;
const waitMaxMs = 100;

/** Slots, and the order in which turns began. */
function slotsUnderTest(isSaturated = () => true) {
  const clock = new ManualClock(startMs);
  const slots = new TurnSlots(clock, { atOnceMax, waitMaxMs, isSaturated });
  const begun: number[] = [];
  let asked = 0;
  const ask = (): void => {
    const turn = asked++;
    const wait = slots.enter();
    if (wait === undefined) begun.push(turn);
    else void wait.then(() => begun.push(turn));
  };
  const fill = (): void => {
    for (let at = 0; at < atOnceMax; at += 1) ask();
  };
  return { clock, slots, begun, ask, fill };
}

describe('turns at once', () => {
  test('begin at once up to their number, and leave no timer', () => {
    const { clock, begun, fill } = slotsUnderTest();
    fill();
    expect(begun).toHaveLength(atOnceMax);
    expect(clock.timers).toBe(0);
  });

  test('beyond it they begin at once too while the node has time to spare', () => {
    let isBusy = false;
    const { begun, ask, fill } = slotsUnderTest(() => isBusy);
    fill();
    ask();
    expect(begun).toHaveLength(atOnceMax + 1);
    isBusy = true;
    ask();
    expect(begun).toHaveLength(atOnceMax + 1);
  });

  test('those that wait begin as soon as the node has time to spare again', async () => {
    let isBusy = true;
    const { clock, begun, ask, fill } = slotsUnderTest(() => isBusy);
    fill();
    ask();
    ask();
    isBusy = false;
    await clock.advance(turnTickMs);
    expect(begun).toHaveLength(atOnceMax + 2);
    expect(clock.timers).toBe(0);
  });

  test('an urgent one begins at once, and counts', async () => {
    const { slots, begun, ask, fill } = slotsUnderTest();
    fill();
    expect(slots.enter(true)).toBeUndefined();
    ask();
    slots.leave();
    await settled();
    expect(begun).toHaveLength(atOnceMax);
    slots.leave();
    await settled();
    expect(begun).toHaveLength(atOnceMax + 1);
  });

  test('beyond it they begin as others end, first come first served', async () => {
    const { slots, begun, ask, fill } = slotsUnderTest();
    fill();
    ask();
    ask();
    await settled();
    expect(begun).toHaveLength(atOnceMax);
    slots.leave();
    await settled();
    expect(begun.slice(atOnceMax)).toEqual([atOnceMax]);
    slots.leave();
    await settled();
    expect(begun.slice(atOnceMax)).toEqual([atOnceMax, atOnceMax + 1]);
  });

  test('after so long a turn begins though none has ended; one that came later waits as long', async () => {
    const { clock, begun, ask, fill } = slotsUnderTest();
    fill();
    ask();
    await clock.advance(turnTickMs);
    ask();
    await clock.advance(waitMaxMs - 2 * turnTickMs);
    expect(begun).toHaveLength(atOnceMax);
    await clock.advance(turnTickMs);
    expect(begun).toHaveLength(atOnceMax + 1);
    await clock.advance(turnTickMs);
    expect(begun).toHaveLength(atOnceMax + 2);
    expect(clock.timers).toBe(0);
  });

  test('turns that began beyond the number are counted: while as many as that run, the next one waits', async () => {
    const { clock, slots, begun, ask, fill } = slotsUnderTest();
    fill();
    ask();
    await clock.advance(waitMaxMs);
    ask();
    slots.leave();
    await settled();
    expect(begun).toHaveLength(atOnceMax + 1);
    slots.leave();
    await settled();
    expect(begun).toHaveLength(atOnceMax + 2);
  });

  test('whatever comes and goes, all begin in their order, and none waits for longer than it may', async () => {
    const step = fc.constantFrom('ask', 'ask', 'leave', 'tick');
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
        const { clock, slots, begun, ask } = slotsUnderTest();
        const askedAt: number[] = [];
        let ended = 0;
        let overdue = 0;
        for (const kind of steps) {
          if (kind === 'ask') {
            askedAt.push(clock.now());
            ask();
          } else if (kind === 'leave' && ended < begun.length) {
            ended += 1;
            slots.leave();
          } else if (kind === 'tick') await clock.advance(turnTickMs);
          await settled();
          overdue += askedAt.slice(begun.length).filter((at) => clock.now() - at >= waitMaxMs).length;
        }
        await clock.advance(waitMaxMs);
        expect(begun).toEqual(askedAt.map((_, turn) => turn));
        expect(overdue).toBe(0);
      }),
    );
  });
});

describe('ledgers that take turns', () => {
  /** As many ledgers as may be at a turn, whose writes the store keeps hanging until `release`, and one more. */
  async function stuck() {
    const held = Promise.withResolvers<void>();
    let isStuck = false;
    const last = uuid(0x500 + atOnceMax);
    const world = rig({
      wrap: (memory) =>
        storeWith(memory, {
          append: async (claim, entries) => {
            if (isStuck && claim.ledgerId !== last) await held.promise;
            await memory.append(claim, entries);
          },
        }),
    });
    const directory = world.directory({ turnPace: { atOnceMax, waitMaxMs, isSaturated: () => true } });
    const ids = Array.from({ length: atOnceMax + 1 }, (_, at) => uuid(0x500 + at));
    for (const ledgerId of ids) {
      await directory.submit(openLedger({ ledgerId }));
      await directory.submit(createMaster({ ledgerId }));
    }
    isStuck = true;
    const others = ids.slice(0, -1).map((ledgerId) => directory.submit(append({ ledgerId })));
    await settled();
    world.meter.batches.length = 0;
    return { ...world, directory, last, others, release: held.resolve };
  }

  test('what comes for a ledger while it waits is one group', async () => {
    const { clock, meter, directory, last, others, release } = await stuck();
    const outcomes = [1, 2, 3].map((count) => directory.submit(append({ ledgerId: last, payload: `{"n":${count}}` })));
    await clock.advance(turnTickMs);
    expect(meter.batches).toEqual([]);
    release();
    await Promise.all([...others, ...outcomes]);
    expect(meter.batches.filter((events) => events > 1)).toEqual([3]);
  });

  test('ledgers whose store hangs keep the others waiting for so long and no longer', async () => {
    const { clock, directory, last, others, release } = await stuck();
    let answered = false;
    const outcome = directory.submit(append({ ledgerId: last })).then(() => {
      answered = true;
    });
    await clock.advance(waitMaxMs - turnTickMs);
    expect(answered).toBe(false);
    await clock.advance(turnTickMs);
    expect(answered).toBe(true);
    release();
    await Promise.all([outcome, ...others]);
  });

  test('a ledger that is being closed waits once, and not for each of its turns', async () => {
    const { clock, directory, last, others, release } = await stuck();
    let answered = 0;
    const outcomes = Array.from({ length: 2 * batchEventsMax + 1 }, async () => {
      await directory.submit(append({ ledgerId: last }));
      answered += 1;
    });
    await settled();
    const closed = directory[Symbol.asyncDispose]();
    await clock.advance(waitMaxMs);
    expect(answered).toBe(outcomes.length);
    release();
    await Promise.all([...outcomes, ...others, closed]);
  });
});
