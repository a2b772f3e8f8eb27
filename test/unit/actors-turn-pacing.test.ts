import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { batchBytesMax, batchEventsMax, turnTickMs } from '../../src/actors/bounds.ts';
import { LedgerActor, nodeWide } from '../../src/actors/ledger-actor.ts';
import { type TurnNeed, TurnPacing, unpaced } from '../../src/actors/turn-pacing.ts';
import { ManualClock, settled } from '../support/clock.ts';
import { append, createMaster, ledgerId, openLedger, uuid } from '../support/commands.ts';
import { rig, startMs, storeWith } from '../support/world.ts';

const freeMax = 8;
const waitMaxMs = 100;
const quietMs = 60;

/** The pacing of a node, and the order in which turns began. */
function pacingUnderTest({ isSaturated = (): boolean => true, clock = new ManualClock(startMs) } = {}) {
  const pacing = new TurnPacing(clock, { freeMax, waitMaxMs, quietMs, isSaturated });
  const begun: number[] = [];
  let asked = 0;
  const ask = (need: () => TurnNeed = () => 'more'): void => {
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
    await clock.advance(turnTickMs);
    ask();
    await clock.advance(waitMaxMs - 2 * turnTickMs);
    expect(begun).toHaveLength(freeMax);
    await clock.advance(turnTickMs);
    expect(begun.slice(freeMax)).toEqual([freeMax]);
    await clock.advance(turnTickMs);
    expect(begun.slice(freeMax)).toEqual([freeMax, freeMax + 1]);
    expect(clock.timers).toBe(0);
  });

  test('go on waiting though others end, as long as those that run or wait are more than their number', async () => {
    const { clock, pacing, begun, ask, fill } = pacingUnderTest();
    fill();
    ask();
    ask();
    pacing.end();
    await clock.advance(turnTickMs);
    expect(begun).toHaveLength(freeMax);
    pacing.end();
    await clock.advance(turnTickMs);
    expect(begun.slice(freeMax)).toEqual([freeMax, freeMax + 1]);
  });

  test('that need nothing more begin as soon as fewer than their number run, however many wait', async () => {
    const { clock, pacing, begun, ask, fill } = pacingUnderTest();
    fill();
    for (let turn = 0; turn < freeMax; turn += 1) ask();
    let need: TurnNeed = 'more';
    ask(() => need);
    const late = 2 * freeMax;
    need = 'nothing';
    await clock.advance(turnTickMs);
    expect(begun).not.toContain(late);
    pacing.end();
    await settled();
    expect(begun.slice(freeMax)).toEqual([late]);
    pacing.end();
    ask(() => 'nothing');
    expect(begun.slice(freeMax)).toEqual([late, late + 1]);
  });

  test('that need nothing more wait for no longer than the others where too many run', async () => {
    const { clock, begun, ask, fill } = pacingUnderTest();
    fill();
    ask(() => 'nothing');
    await clock.advance(waitMaxMs - turnTickMs);
    expect(begun).toHaveLength(freeMax);
    await clock.advance(turnTickMs);
    expect(begun).toHaveLength(freeMax + 1);
  });

  test('whose end is waited for begin at once, or with the next tick, and count', async () => {
    const { clock, begun, ask, fill } = pacingUnderTest();
    fill();
    ask(() => 'haste');
    expect(begun).toHaveLength(freeMax + 1);
    let need: TurnNeed = 'more';
    ask(() => need);
    need = 'haste';
    await clock.advance(turnTickMs);
    expect(begun).toHaveLength(freeMax + 2);
    ask(() => 'nothing');
    expect(begun).toHaveLength(freeMax + 2);
  });

  test('wait for so many ticks where the clock is put back', async () => {
    const clock = new ManualClock(startMs);
    let putBackMs = 0;
    const shifted = Object.assign(Object.create(clock) as ManualClock, {
      now: () => clock.now() - putBackMs,
      after: (delayMs: number, run: () => void) => clock.after(delayMs, run),
    });
    const { begun, ask, fill } = pacingUnderTest({ clock: shifted });
    fill();
    ask();
    putBackMs = 60_000;
    await clock.advance(waitMaxMs - turnTickMs);
    expect(begun).toHaveLength(freeMax);
    await clock.advance(turnTickMs);
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
        const needed: TurnNeed[] = [];
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
          overdue += waiting.filter((at) => clock.now() - at >= waitMaxMs + turnTickMs).length;
        }
        await clock.advance(waitMaxMs + turnTickMs);
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
    await clock.advance(turnTickMs);
    expect(begun).toHaveLength(freeMax + 2);
    expect(clock.timers).toBe(0);
  });
});

describe('ledgers that take turns', () => {
  /** As many ledgers as may be at a turn, whose writes the store keeps hanging until `release`, and one more. */
  async function stuck() {
    const held = Promise.withResolvers<void>();
    let isStuck = false;
    const last = uuid(0x500 + freeMax);
    const world = rig({
      wrap: (memory) =>
        storeWith(memory, {
          append: async (claim, entries) => {
            if (isStuck && claim.ledgerId !== last) await held.promise;
            await memory.append(claim, entries);
          },
        }),
    });
    const directory = world.directory({ turnPace: { freeMax, waitMaxMs, quietMs, isSaturated: () => true } });
    const ids = Array.from({ length: freeMax + 1 }, (_, at) => uuid(0x500 + at));
    for (const ledgerId of ids) {
      await directory.submit(openLedger({ ledgerId }));
      await directory.submit(createMaster({ ledgerId }));
    }
    isStuck = true;
    const others = ids.slice(0, -1).map((ledgerId) => directory.submit(append({ ledgerId })));
    await settled();
    world.meter.batches.length = 0;
    let count = 0;
    /** Sends so many appends to the one more at once. */
    const send = (appends: number) =>
      Array.from({ length: appends }, () => {
        count += 1;
        return directory.submit(append({ ledgerId: last, payload: `{"n":${count}}` }));
      });
    return { ...world, directory, last, send, others, release: held.resolve };
  }

  test('what comes for a ledger while it waits is one group', async () => {
    const { clock, meter, send, others, release } = await stuck();
    const outcomes = send(2);
    await clock.advance(turnTickMs);
    outcomes.push(...send(3));
    await clock.advance(waitMaxMs - 2 * turnTickMs);
    expect(meter.batches).toEqual([]);
    await clock.advance(turnTickMs);
    await Promise.all(outcomes);
    expect(meter.batches).toEqual([5]);
    release();
    await Promise.all(others);
  });

  test('ledgers whose store hangs keep the others waiting for so long and no longer', async () => {
    const { clock, send, others, release } = await stuck();
    let answered = false;
    const [outcome] = send(1).map((sent) =>
      sent.then(() => {
        answered = true;
      }),
    );
    await clock.advance(waitMaxMs - turnTickMs);
    expect(answered).toBe(false);
    await clock.advance(turnTickMs);
    expect(answered).toBe(true);
    release();
    await Promise.all([outcome, ...others]);
  });

  test('a ledger that is being closed waits no longer, and for none of its turns', async () => {
    const { clock, directory, send, others, release } = await stuck();
    let answered = 0;
    const outcomes = send(2 * batchEventsMax + 1).map((sent) =>
      sent.then(() => {
        answered += 1;
      }),
    );
    await settled();
    const closed = directory[Symbol.asyncDispose]();
    await clock.advance(turnTickMs);
    expect(answered).toBe(outcomes.length);
    release();
    await Promise.all([...outcomes, ...others, closed]);
  });

  test('to be told what is certain nobody waits for a turn', async () => {
    const { directory, last, others, release } = await stuck();
    expect(await directory.makeCertain(last)).toBe(2);
    release();
    await Promise.all(others);
  });
});

describe('what a ledger says of its turns', () => {
  /** A ledger whose turns begin when the test has them begin, and what it says meanwhile. */
  async function heldBack() {
    const { parts, clock } = rig();
    let asked: (() => TurnNeed) | null = null;
    let begin = () => {};
    const pacing = {
      quietMs,
      begin: (need: () => TurnNeed) => {
        asked = need;
        return new Promise<void>((resolve) => {
          begin = resolve;
        });
      },
      end: () => {
        asked = null;
      },
    };
    const actor = new LedgerActor(ledgerId, parts, { ...nodeWide(parts.clock, unpaced), pacing });
    let count = 0;
    const send = (appends: number, payload = '') => {
      for (let at = 0; at < appends; at += 1) {
        count += 1;
        void actor.submit(append({ payload: JSON.stringify({ n: count, payload }) }));
      }
    };
    const takeTurn = async (): Promise<void> => {
      begin();
      await settled();
    };
    void actor.submit(openLedger());
    void actor.submit(createMaster());
    await settled();
    await takeTurn();
    return { actor, clock, send, takeTurn, need: () => asked?.() ?? null };
  }

  test('it needs more as long as more comes, and for a while behind the last that came', async () => {
    const { clock, send, takeTurn, need } = await heldBack();
    send(1);
    await settled();
    expect(need()).toBe('more');
    for (let more = 0; more < 5; more += 1) {
      clock.jump(quietMs - 1);
      expect(need()).toBe('more');
      send(1);
      expect(need()).toBe('more');
    }
    clock.jump(quietMs);
    expect(need()).toBe('nothing');
    await takeTurn();
    expect(need()).toBeNull();
    send(1);
    await settled();
    expect(need()).toBe('more');
  });

  test('it is not kept waiting by a clock that is put back', async () => {
    const { clock, send, need } = await heldBack();
    send(1);
    await settled();
    clock.jump(-60_000);
    expect(need()).toBe('more');
    clock.jump(quietMs);
    expect(need()).toBe('nothing');
  });

  test('it needs nothing where a group is full, by events or by bytes', async () => {
    const { send, takeTurn, need } = await heldBack();
    send(batchEventsMax - 1);
    await settled();
    expect(need()).toBe('more');
    send(1);
    expect(need()).toBe('nothing');
    await takeTurn();
    send(3, 'x'.repeat(batchBytesMax / 4));
    await settled();
    expect(need()).toBe('more');
    send(1, 'x'.repeat(batchBytesMax / 4));
    expect(need()).toBe('nothing');
  });

  test('it makes haste once it is being closed', async () => {
    const { actor, send, takeTurn, need } = await heldBack();
    send(1);
    await settled();
    const closed = actor.close();
    expect(need()).toBe('haste');
    await takeTurn();
    await closed;
  });
});
