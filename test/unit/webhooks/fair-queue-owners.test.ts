import { describe, expect, test } from 'vitest';
import { fairQueueRig, type TestQueue } from '../../support/webhook-fair-queue.ts';

/** How often a slot is given for untried and for slow targets. */
const untriedSlotMs = 500;
const slowSlotMs = 1_000;

/** How long the queue waits for a slot, ms. Infinity: longer than `seconds`. `each` is called every second. */
async function waitMs(
  world: ReturnType<typeof fairQueueRig>,
  queue: TestQueue,
  seconds: number,
  each: (second: number) => void,
) {
  const { clock, fair, sending, fill } = world;
  const since = clock.now();
  fair.ready(queue);
  for (let second = 0; second < seconds; second++) {
    each(second);
    fill();
    const begun = sending.find((one) => one.queue === queue);
    if (begun !== undefined) return begun.atMs - since;
    await clock.advance(1_000);
  }
  return Number.POSITIVE_INFINITY;
}

describe('owners are served round-robin', () => {
  /** All slots for untried targets are held by dead targets of these owners, and each owner has more of them. */
  function fullOfDead(owners: number) {
    const world = fairQueueRig();
    world.dead(({ origin }) => origin.startsWith('dead'));
    for (let at = 0; at < owners; at++)
      for (let more = 0; more < 30; more++) world.ready(`owner-${at}`, `dead-${at}-${more}`);
    world.fill();
    return world;
  }

  test.each([2, 10])(
    'new owners with a dead target each, %d a second, are not served before an owner that waits already',
    async (aSecond) => {
      const world = fairQueueRig();
      world.dead(({ origin }) => origin.startsWith('dead'));
      world.prove('known', 'known-before');
      const addOwners = (second: number) => {
        for (let at = 0; at < aSecond; at++) world.ready(`new-${second}-${at}`, `dead-${second}-${at}`);
      };
      for (let second = -20; second < 0; second++) {
        addOwners(second);
        world.fill();
        await world.clock.advance(1_000);
      }
      const waiting = 20 * aSecond - new Set(world.sending.map(({ queue }) => queue.owner)).size;
      const waited = await waitMs(world, { owner: 'known', origin: 'new' }, 600, addOwners);
      expect(waited).toBeLessThanOrEqual((waiting + 1) * untriedSlotMs);
    },
  );

  test('a slow target that answers is served while new owners with dead targets come all the time', async () => {
    const world = fairQueueRig();
    const { clock, fair, sending, fill, ready } = world;
    world.dead(({ origin }) => origin.startsWith('dead'));
    const own = ready('known', 'slow');
    for (let time = 0; time < 2; time++) {
      fill();
      for (const { queue } of sending.splice(0)) fair.end(queue, 2_000);
      if (time === 0) ready('known', 'slow');
    }
    // A target that did not answer its first attempt is tried again at once, as a slow one.
    const addOwners = (second: number) => {
      for (let at = 0; at < 10; at++) ready(`new-${second}-${at}`, `dead-${second}-${at}`);
    };
    for (let second = 0; second < 60; second++) {
      addOwners(second);
      fill();
      await clock.advance(1_000);
    }
    const waiting = new Set(sending.splice(0).map(({ queue }) => queue.owner)).size;
    const waited = await waitMs(world, own, 600, (second) => addOwners(1_000 + second));
    expect(waited).toBeLessThanOrEqual((waiting + 1) * slowSlotMs);
  });

  test('an owner waits for one slot of each owner that waits already, and for none that comes later', async () => {
    const world = fullOfDead(20);
    const late = (second: number) => {
      for (let at = 0; at < 10; at++) world.ready(`late-${second}-${at}`, `dead-late-${second}-${at}`);
    };
    const waited = await waitMs(world, { owner: 'b', origin: 'b' }, 60, late);
    expect(waited).toBeLessThanOrEqual(21 * untriedSlotMs);
    expect(waited).toBeGreaterThan(5_000);
  });

  test('a target that two owners send to does not wait behind the dead targets of one of them', async () => {
    const world = fullOfDead(1);
    world.ready('owner-0', 'shared');
    for (let at = 0; at < 50; at++) world.ready('owner-0', `dead-later-${at}`);
    const begun = () => world.sending.find(({ queue }) => queue.origin === 'shared');
    world.ready('b', 'shared');
    for (let ms = 0; begun() === undefined && ms < 60_000; ms += untriedSlotMs)
      await world.clock.advance(untriedSlotMs);
    expect(begun()?.atMs).toBeLessThanOrEqual(2 * untriedSlotMs);
  });
});

describe('at a target of several owners', () => {
  test('owners are served round-robin, however many queues one of them has', () => {
    const { sending, ready, fill, end, prove } = fairQueueRig();
    prove('a', 'shared');
    for (let queue = 0; queue < 1_000; queue++) ready('a', 'shared');
    fill();
    const own = [ready('b', 'shared'), ready('b', 'shared')];
    fill();
    for (const { queue } of sending.splice(0)) end(queue, 10);
    expect(sending.filter(({ queue }) => own.includes(queue))).toHaveLength(2);
    expect(sending).toHaveLength(4);
  });

  test('an owner that is served at another target all the time is served there too', () => {
    const { sending, ready, fill, end, prove } = fairQueueRig();
    prove('a', 'shared');
    prove('b', 'elsewhere');
    for (let queue = 0; queue < 1_000; queue++) ready('a', 'shared');
    fill();
    const own = ready('b', 'shared');
    const answered = (origin: string) => {
      const at = sending.findIndex(({ queue }) => queue.origin === origin);
      for (const { queue } of sending.splice(at, 1)) end(queue, 10);
    };
    for (let time = 0; time < 2; time++) {
      ready('b', 'elsewhere');
      fill();
      answered('elsewhere');
      answered('shared');
    }
    expect(sending.map(({ queue }) => queue)).toContain(own);
  });

  test('an owner without a slot is not blocked by an owner that holds as many as it may', () => {
    const { fair, sending, ready, fill, prove } = fairQueueRig();
    for (let at = 0; at < 10; at++) prove('a', `a-${at}`);
    prove('a', 'shared');
    for (let at = 0; at < 10; at++) for (let queue = 0; queue < 4; queue++) ready('a', `a-${at}`);
    fill();
    expect(sending).toHaveLength(28);
    ready('a', 'shared');
    fill();
    expect(sending).toHaveLength(28);
    const own = ready('b', 'shared');
    expect(fair.next()).not.toBe(null);
    fill();
    expect(sending.at(-1)?.queue).toBe(own);
    expect(sending).toHaveLength(29);
  });
});
