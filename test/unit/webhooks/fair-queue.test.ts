import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AttemptResult } from '../../../src/webhooks/send/target-health.ts';
import { fairQueueRig, type TestQueue } from '../../support/webhook-fair-queue.ts';

describe('a fair queue', () => {
  test('makes 64 attempts at once at most, however many owners and targets wait', () => {
    const { fair, sending, ready, fill, prove } = fairQueueRig();
    const quick = Array.from({ length: 60 }, (_, at) => [`owner-${at}`, `quick-${at}`] as const);
    for (const [owner, origin] of quick) prove(owner, origin);
    for (const [owner, origin] of quick) for (let queue = 0; queue < 6; queue++) ready(owner, origin);
    for (let at = 0; at < 100; at++) ready(`other-${at}`, `untried-${at}`);
    fill();
    expect(fair.active).toBeLessThanOrEqual(64);
    expect(fair.active).toBeGreaterThan(56);
    const perTarget = Map.groupBy(sending, ({ queue }) => queue.origin);
    expect(Math.max(...[...perTarget.values()].map((held) => held.length))).toBeLessThanOrEqual(4);
  });

  test('makes 4 attempts at once at a quick target, and 1 at an untried target until its first answer', () => {
    const { sending, ready, fill, end } = fairQueueRig();
    const [first] = Array.from({ length: 9 }, () => ready('a', 'one'));
    fill();
    expect(sending).toHaveLength(1);
    if (first !== undefined) end(first, 20);
    expect(sending).toHaveLength(5);
  });

  test('a target that answers late or not at all is slow: attempts at it take no slots of untried targets', () => {
    const { fair, ready, fill, end, sending } = fairQueueRig();
    for (const took of [1_001, 'no_answer'] as const) {
      const origin = `took ${took}`;
      const queue = ready('a', origin);
      fill();
      end(queue, took);
      expect(fair.isQuick(origin)).toBe(false);
      sending.length = 0;
    }
    for (let queue = 0; queue < 6; queue++) for (const took of [1_001, 'no_answer']) ready('a', `took ${took}`);
    for (let at = 0; at < 14; at++) ready('a', `untried-${at}`);
    fill();
    expect(sending.filter(({ queue }) => queue.origin.startsWith('took'))).toHaveLength(2 * 4);
    expect(sending.filter(({ queue }) => queue.origin.startsWith('untried'))).toHaveLength(9);
  });

  test('an attempt that sent nothing does not change the health of its target', () => {
    const { fair, sending, ready, fill } = fairQueueRig();
    const queue = ready('a', 'one');
    fill();
    fair.end(queue, 'not_asked');
    for (let more = 0; more < 4; more++) ready('a', 'one');
    fill();
    expect(sending).toHaveLength(2);
    expect(() => fair.end(queue, 5)).toThrow('was not sending');
  });

  test('every ready queue sends at some time, and no target has more than 4 attempts at once', async () => {
    const step = fc.record({
      owner: fc.nat(4),
      origin: fc.nat(5),
      ended: fc.nat(3),
      took: fc.constantFrom<AttemptResult>(5, 2_000, 'no_answer', 'not_asked'),
    });
    const run = fc.asyncProperty(fc.array(step, { maxLength: 200 }), async (steps) => {
      const { clock, fair, sending, fill, ready } = fairQueueRig();
      const waiting = new Set<TestQueue>();
      const end = (at: number, took: AttemptResult) => {
        const [ended] = sending.splice(at, 1);
        if (ended !== undefined && waiting.delete(ended.queue)) fair.end(ended.queue, took);
        fill();
        const held = [...Map.groupBy(sending, ({ queue }) => queue.origin).values()].map(({ length }) => length);
        expect(Math.max(0, ...held)).toBeLessThanOrEqual(4);
      };
      for (const { owner, origin, ended, took } of steps) {
        waiting.add(ready(`owner-${owner}`, `origin-${origin}`));
        fill();
        end(ended, took);
      }
      while (sending.length > 0 || clock.timers > 0) {
        await clock.advance(1_000);
        end(0, 'no_answer');
      }
      expect([waiting.size, fair.active, fair.next()]).toEqual([0, 0, null]);
    });
    await fc.assert(run, { numRuns: 50 });
  });

  test('keeps nothing of attempts that have ended', () => {
    const { clock, fair, ready, fill, end, sending } = fairQueueRig();
    for (let at = 0; at < 4; at++) ready(`owner-${at}`, `target-${at}`);
    fill();
    for (const { queue } of [...sending]) end(queue, 'no_answer');
    expect([fair.active, fair.next(), clock.timers]).toEqual([0, null, 0]);
  });
});

describe('beside dead targets', () => {
  /** The longest wait of a newcomer's first attempt. The newcomer comes at another moment in each run. */
  async function longestWaitMs(
    comes: (at: number) => TestQueue,
    hostile: (put: (owner: string, origin: string) => void, second: number) => void,
  ): Promise<number> {
    let longest = 0;
    for (let atMs = 0; atMs <= 24_000; atMs += 1_300) {
      const { clock, sending, ready, fill, dead, fair } = fairQueueRig();
      dead(({ origin }) => origin !== 'newcomer');
      for (let ms = 0; ms <= atMs; ms += 500) {
        hostile((owner, origin) => void ready(owner, origin), ms / 1_000);
        fill();
        await clock.advance(Math.min(500, atMs - ms));
      }
      const newcomer = comes(atMs);
      fair.ready(newcomer);
      const since = clock.now();
      fill();
      await clock.advance(4_000);
      const begun = sending.find(({ queue }) => queue === newcomer);
      longest = Math.max(longest, (begun?.atMs ?? Number.POSITIVE_INFINITY) - since);
      expect(fair.active).toBeLessThanOrEqual(64);
    }
    return longest;
  }
  const newcomerOf = (owner: string) => () => ({ owner, origin: 'newcomer' });
  const manyQueues = (put: (owner: string, origin: string) => void, owner: string, origin: string) => {
    for (let queue = 0; queue < 6; queue++) put(owner, origin);
  };

  test.each(['a', 'b'])(
    'a new target of owner %s waits a second at most while 200 targets of owner a are dead',
    async (owner) => {
      const waited = await longestWaitMs(newcomerOf(owner), (put, second) => {
        if (second === 0) for (let at = 0; at < 200; at++) manyQueues(put, 'a', `dead-${at}`);
      });
      expect(waited).toBeLessThanOrEqual(1_000);
    },
  );

  test('a new target waits for one slot of each of 5 owners that add dead targets all the time', async () => {
    const waited = await longestWaitMs(newcomerOf('b'), (put, second) => {
      for (let at = 0; at < 30; at++) manyQueues(put, `hostile-${at % 5}`, `dead-${second}-${at}`);
    });
    expect(waited).toBeLessThanOrEqual(6 * 500);
  });

  test('a slow target that answers is served beside the dead targets of another owner', async () => {
    const { clock, sending, ready, fill, dead, fair } = fairQueueRig();
    for (let at = 0; at < 200; at++) for (let queue = 0; queue < 6; queue++) ready('a', `dead-${at}`);
    dead(({ owner }) => owner === 'a');
    ready('b', 'slow');
    fill();
    let answered = 0;
    for (let s = 0; s < 60; s++) {
      await clock.advance(1_000);
      for (const { queue, atMs } of sending.filter(
        (one) => one.queue.owner === 'b' && one.atMs <= clock.now() - 2_000,
      )) {
        sending.splice(
          sending.findIndex((one) => one.queue === queue && one.atMs === atMs),
          1,
        );
        fair.end(queue, 2_000);
        answered += 1;
        fair.ready(queue);
        fill();
      }
    }
    // An attempt takes two seconds, and the next one waits for two slots, of a second each, at most.
    expect(answered).toBeGreaterThanOrEqual(15);
  });

  test('quick targets of other owners are served when all quick targets of one owner stop answering', async () => {
    const { clock, sending, ready, fill, end, prove, countOf } = fairQueueRig();
    for (let at = 0; at < 30; at++) prove('a', `a-${at}`);
    for (let at = 0; at < 30; at++) prove('b', `b-${at}`);
    for (let at = 0; at < 30; at++) for (let queue = 0; queue < 6; queue++) ready('a', `a-${at}`);
    fill();
    expect(countOf('a')).toBe(28);
    for (let at = 0; at < 30; at++) for (let queue = 0; queue < 6; queue++) ready('b', `b-${at}`);
    fill();
    expect(countOf('b')).toBe(14);
    for (let at = 0; at < 100; at++) ready('c', `untried-${at}`);
    fill();
    await clock.advance(9_000);
    for (let answered = 0; answered < 150; answered++) {
      const at = sending.findIndex(({ queue }) => queue.owner === 'b');
      const [one] = sending.splice(at, 1);
      if (one === undefined) throw new Error('b has none');
      end(one.queue, 10);
      expect(countOf('b')).toBeGreaterThanOrEqual(12);
    }
  });
});
