import { describe, expect, test } from 'vitest';
import { type Lane, slots } from '../../support/webhook-slots.ts';

/** So often a slot is given for targets that were never tried, and for slow ones. */
const turnMs = 500;
const slowTurnMs = 1_000;

/** How long until the lane has a slot; Infinity: not within the time there is, in which `each` is called every second. */
async function waitMs(world: ReturnType<typeof slots>, lane: Lane, seconds: number, each: (second: number) => void) {
  const { clock, targets, sending, given } = world;
  const since = clock.now();
  targets.ready(lane.origin, lane);
  for (let second = 0; second < seconds; second++) {
    each(second);
    given();
    const begun = sending.find((one) => one.lane === lane);
    if (begun !== undefined) return begun.atMs - since;
    await clock.advance(1_000);
  }
  return Number.POSITIVE_INFINITY;
}

describe('owners take turns', () => {
  /** Every slot for targets that were never tried is held by dead ones of these owners, who each have more. */
  function beset(owners: number) {
    const world = slots();
    world.dead(({ origin }) => origin.startsWith('dead'));
    for (let at = 0; at < owners; at++)
      for (let more = 0; more < 30; more++) world.ready(`owner-${at}`, `dead-${at}-${more}`);
    world.given();
    return world;
  }

  test.each([2, 10])(
    'new owners, %d a second with a dead receiver each, are not before one that waits',
    async (aSecond) => {
      const world = slots();
      world.dead(({ origin }) => origin.startsWith('dead'));
      world.prove('known', 'known-before');
      const comes = (second: number) => {
        for (let at = 0; at < aSecond; at++) world.ready(`new-${second}-${at}`, `dead-${second}-${at}`);
      };
      for (let second = -20; second < 0; second++) {
        comes(second);
        world.given();
        await world.clock.advance(1_000);
      }
      const waiting = 20 * aSecond - new Set(world.sending.map(({ lane }) => lane.owner)).size;
      const waited = await waitMs(world, { owner: 'known', origin: 'its new one' }, 600, comes);
      expect(waited).toBeLessThanOrEqual((waiting + 1) * turnMs);
    },
  );

  test('a slow receiver that works gets its turns while owners whose receivers are dead come all the time', async () => {
    const world = slots();
    const { clock, targets, sending, given, ready } = world;
    world.dead(({ origin }) => origin.startsWith('dead'));
    const mine = ready('known', 'slow');
    for (let turn = 0; turn < 2; turn++) {
      given();
      for (const { lane } of sending.splice(0)) targets.done(lane, 2_000);
      if (turn === 0) ready('known', 'slow');
    }
    // What was dead at its first attempt is tried again at once, among the slow ones.
    const comes = (second: number) => {
      for (let at = 0; at < 10; at++) ready(`new-${second}-${at}`, `dead-${second}-${at}`);
    };
    for (let second = 0; second < 60; second++) {
      comes(second);
      given();
      await clock.advance(1_000);
    }
    const waiting = new Set(sending.splice(0).map(({ lane }) => lane.owner)).size;
    const waited = await waitMs(world, mine, 600, (second) => comes(1_000 + second));
    expect(waited).toBeLessThanOrEqual((waiting + 1) * slowTurnMs);
  });

  test('who comes waits for as many turns as owners wait, whatever each has, and for none that comes later', async () => {
    const world = beset(20);
    const late = (second: number) => {
      for (let at = 0; at < 10; at++) world.ready(`late-${second}-${at}`, `dead-late-${second}-${at}`);
    };
    const waited = await waitMs(world, { owner: 'b', origin: 'b' }, 60, late);
    expect(waited).toBeLessThanOrEqual(21 * turnMs);
    expect(waited).toBeGreaterThan(5_000);
  });

  test('one that another owner sends to as well is not behind that owner’s dead ones', async () => {
    const world = beset(1);
    world.ready('owner-0', 'shared');
    for (let at = 0; at < 50; at++) world.ready('owner-0', `dead-later-${at}`);
    const begun = () => world.sending.find(({ lane }) => lane.origin === 'shared');
    world.ready('b', 'shared');
    for (let ms = 0; begun() === undefined && ms < 60_000; ms += turnMs) await world.clock.advance(turnMs);
    expect(begun()?.atMs).toBeLessThanOrEqual(2 * turnMs);
  });
});

describe('at a target that owners share', () => {
  test('they take turns, however many lanes one has', () => {
    const { sending, ready, given, done, prove } = slots();
    prove('a', 'shared');
    for (let lane = 0; lane < 1_000; lane++) ready('a', 'shared');
    given();
    const mine = [ready('b', 'shared'), ready('b', 'shared')];
    given();
    for (const { lane } of sending.splice(0)) done(lane, 10);
    expect(sending.filter(({ lane }) => mine.includes(lane))).toHaveLength(2);
    expect(sending).toHaveLength(4);
  });

  test('one that is served elsewhere all the time has its turns there too', () => {
    const { sending, ready, given, done, prove } = slots();
    prove('a', 'shared');
    prove('b', 'elsewhere');
    for (let lane = 0; lane < 1_000; lane++) ready('a', 'shared');
    given();
    const mine = ready('b', 'shared');
    const answered = (origin: string) => {
      const at = sending.findIndex(({ lane }) => lane.origin === origin);
      for (const { lane } of sending.splice(at, 1)) done(lane, 10);
    };
    for (let turn = 0; turn < 2; turn++) {
      ready('b', 'elsewhere');
      given();
      answered('elsewhere');
      answered('shared');
    }
    expect(sending.map(({ lane }) => lane)).toContain(mine);
  });

  test('one that holds no slot is not blocked by one that holds all it may', () => {
    const { targets, sending, ready, given, prove } = slots();
    for (let at = 0; at < 10; at++) prove('a', `a-${at}`);
    prove('a', 'shared');
    for (let at = 0; at < 10; at++) for (let lane = 0; lane < 4; lane++) ready('a', `a-${at}`);
    given();
    expect(sending).toHaveLength(28);
    ready('a', 'shared');
    given();
    expect(sending).toHaveLength(28);
    const mine = ready('b', 'shared');
    expect(targets.turn()).not.toBe(null);
    given();
    expect(sending.at(-1)?.lane).toBe(mine);
    expect(sending).toHaveLength(29);
  });
});
