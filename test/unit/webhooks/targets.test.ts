import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AttemptResult } from '../../../src/webhooks/send/standings.ts';
import { type Lane, slots } from '../../support/webhook-slots.ts';

describe('slots', () => {
  test('there are 64 in all, however many owners and targets wait for them', () => {
    const { targets, sending, ready, given, prove } = slots();
    const quick = Array.from({ length: 60 }, (_, at) => [`owner-${at}`, `quick-${at}`] as const);
    for (const [owner, origin] of quick) prove(owner, origin);
    for (const [owner, origin] of quick) for (let lane = 0; lane < 6; lane++) ready(owner, origin);
    for (let at = 0; at < 100; at++) ready(`other-${at}`, `untried-${at}`);
    given();
    expect(targets.active).toBeLessThanOrEqual(64);
    expect(targets.active).toBeGreaterThan(56);
    const perTarget = Map.groupBy(sending, ({ lane }) => lane.origin);
    expect(Math.max(...[...perTarget.values()].map((held) => held.length))).toBeLessThanOrEqual(4);
  });

  test('a target that answers quickly has 4, one that was never tried has 1 until its first answer', () => {
    const { sending, ready, given, done } = slots();
    const [first] = Array.from({ length: 9 }, () => ready('a', 'one'));
    given();
    expect(sending).toHaveLength(1);
    if (first !== undefined) done(first, 20);
    expect(sending).toHaveLength(5);
  });

  test('who answers late, or not at all, is slow: its next attempts take nothing from those that were never tried', () => {
    const { targets, ready, given, done, sending } = slots();
    for (const took of [1_001, 'no_answer'] as const) {
      const origin = `took ${took}`;
      const lane = ready('a', origin);
      given();
      done(lane, took);
      expect(targets.isQuick(origin)).toBe(false);
      sending.length = 0;
    }
    for (let lane = 0; lane < 6; lane++) for (const took of [1_001, 'no_answer']) ready('a', `took ${took}`);
    for (let at = 0; at < 14; at++) ready('a', `untried-${at}`);
    given();
    expect(sending.filter(({ lane }) => lane.origin.startsWith('took'))).toHaveLength(2 * 4);
    expect(sending.filter(({ lane }) => lane.origin.startsWith('untried'))).toHaveLength(9);
  });

  test('an attempt that was none says nothing of its target', () => {
    const { targets, sending, ready, given } = slots();
    const lane = ready('a', 'one');
    given();
    targets.done(lane, 'not_asked');
    for (let more = 0; more < 4; more++) ready('a', 'one');
    given();
    expect(sending).toHaveLength(2);
    expect(() => targets.done(lane, 5)).toThrow('was not sending');
  });

  test('every lane that is ready gets its turn, whatever becomes of the others, and no target more than its slots', async () => {
    const step = fc.record({
      owner: fc.nat(4),
      origin: fc.nat(5),
      ended: fc.nat(3),
      took: fc.constantFrom<AttemptResult>(5, 2_000, 'no_answer', 'not_asked'),
    });
    const run = fc.asyncProperty(fc.array(step, { maxLength: 200 }), async (steps) => {
      const { clock, targets, sending, given, ready } = slots();
      const waiting = new Set<Lane>();
      const end = (at: number, took: AttemptResult) => {
        const [ended] = sending.splice(at, 1);
        if (ended !== undefined && waiting.delete(ended.lane)) targets.done(ended.lane, took);
        given();
        const held = [...Map.groupBy(sending, ({ lane }) => lane.origin).values()].map(({ length }) => length);
        expect(Math.max(0, ...held)).toBeLessThanOrEqual(4);
      };
      for (const { owner, origin, ended, took } of steps) {
        waiting.add(ready(`owner-${owner}`, `origin-${origin}`));
        given();
        end(ended, took);
      }
      while (sending.length > 0 || clock.timers > 0) {
        await clock.advance(1_000);
        end(0, 'no_answer');
      }
      expect([waiting.size, targets.active, targets.turn()]).toEqual([0, 0, null]);
    });
    await fc.assert(run, { numRuns: 50 });
  });

  test('nothing is left of what has ended', () => {
    const { clock, targets, ready, given, done, sending } = slots();
    for (let at = 0; at < 4; at++) ready(`owner-${at}`, `target-${at}`);
    given();
    for (const { lane } of [...sending]) done(lane, 'no_answer');
    expect([targets.active, targets.turn(), clock.timers]).toEqual([0, null, 0]);
  });
});

describe('however many are dead', () => {
  /** The longest that a first attempt of a newcomer waited, which comes at each of these moments in a run of its own. */
  async function longestWaitMs(
    comes: (at: number) => Lane,
    hostile: (put: (owner: string, origin: string) => void, second: number) => void,
  ): Promise<number> {
    let longest = 0;
    for (let atMs = 0; atMs <= 24_000; atMs += 1_300) {
      const { clock, sending, ready, given, dead, targets } = slots();
      dead(({ origin }) => origin !== 'newcomer');
      for (let ms = 0; ms <= atMs; ms += 500) {
        hostile((owner, origin) => void ready(owner, origin), ms / 1_000);
        given();
        await clock.advance(Math.min(500, atMs - ms));
      }
      const newcomer = comes(atMs);
      targets.ready(newcomer.origin, newcomer);
      const since = clock.now();
      given();
      await clock.advance(4_000);
      const begun = sending.find(({ lane }) => lane === newcomer);
      longest = Math.max(longest, (begun?.atMs ?? Number.POSITIVE_INFINITY) - since);
      expect(targets.active).toBeLessThanOrEqual(64);
    }
    return longest;
  }
  const newcomerOf = (owner: string) => () => ({ owner, origin: 'newcomer' });
  const manyLanes = (put: (owner: string, origin: string) => void, owner: string, origin: string) => {
    for (let lane = 0; lane < 6; lane++) put(owner, origin);
  };

  test.each(['a', 'b'])('a newcomer of %s waits a second at most while 200 of a are dead', async (owner) => {
    const waited = await longestWaitMs(newcomerOf(owner), (put, second) => {
      if (second === 0) for (let at = 0; at < 200; at++) manyLanes(put, 'a', `dead-${at}`);
    });
    expect(waited).toBeLessThanOrEqual(1_000);
  });

  test('one of a stranger waits for a turn of each while 5 owners bring new dead ones all the time', async () => {
    const waited = await longestWaitMs(newcomerOf('b'), (put, second) => {
      for (let at = 0; at < 30; at++) manyLanes(put, `hostile-${at % 5}`, `dead-${second}-${at}`);
    });
    expect(waited).toBeLessThanOrEqual(6 * 500);
  });

  test('those that are slow and work get their turns beside one owner’s dead ones', async () => {
    const { clock, sending, ready, given, dead, targets } = slots();
    for (let at = 0; at < 200; at++) for (let lane = 0; lane < 6; lane++) ready('a', `dead-${at}`);
    dead(({ owner }) => owner === 'a');
    ready('b', 'slow');
    given();
    let answered = 0;
    for (let s = 0; s < 60; s++) {
      await clock.advance(1_000);
      for (const { lane, atMs } of sending.filter((one) => one.lane.owner === 'b' && one.atMs <= clock.now() - 2_000)) {
        sending.splice(
          sending.findIndex((one) => one.lane === lane && one.atMs === atMs),
          1,
        );
        targets.done(lane, 2_000);
        answered += 1;
        targets.ready('slow', lane);
        given();
      }
    }
    // Two seconds each, and two turns of a second at most between them.
    expect(answered).toBeGreaterThanOrEqual(15);
  });

  test('quick ones of others go on when all of one owner’s stop answering at once, beside another’s untried dead ones', async () => {
    const { clock, sending, ready, given, done, prove, countOf } = slots();
    for (let at = 0; at < 30; at++) prove('a', `a-${at}`);
    for (let at = 0; at < 30; at++) prove('b', `b-${at}`);
    for (let at = 0; at < 30; at++) for (let lane = 0; lane < 6; lane++) ready('a', `a-${at}`);
    given();
    expect(countOf('a')).toBe(28);
    for (let at = 0; at < 30; at++) for (let lane = 0; lane < 6; lane++) ready('b', `b-${at}`);
    given();
    expect(countOf('b')).toBe(14);
    for (let at = 0; at < 100; at++) ready('c', `untried-${at}`);
    given();
    await clock.advance(9_000);
    for (let answered = 0; answered < 150; answered++) {
      const at = sending.findIndex(({ lane }) => lane.owner === 'b');
      const [one] = sending.splice(at, 1);
      if (one === undefined) throw new Error('b has none');
      done(one.lane, 10);
      expect(countOf('b')).toBeGreaterThanOrEqual(12);
    }
  });
});
