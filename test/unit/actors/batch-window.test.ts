import { describe, expect, test } from 'vitest';
import { BatchWindow } from '../../../src/actors/batching/batch-window.ts';
import { batchBytesMax, batchEventsMax } from '../../../src/actors/bounds.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { append, createMaster, ledgerId, openLedger } from '../../support/commands.ts';
import { rig, startMs, storeWith } from '../../support/world.ts';

const maxDelayMs = 100;
const freeBatches = 8;
const limits = {
  maxEvents: batchEventsMax,
  maxBytes: batchBytesMax,
  freeBatches,
  maxDelayMs,
  startsWhenOneEnds: false,
};

/** A window in which so many batches run. */
function windowWith(
  running: number,
  given: Partial<typeof limits & { isSaturated: boolean; clock: ManualClock }> = {},
) {
  const { isSaturated = true, clock = new ManualClock(startMs), ...changed } = given;
  const window = new BatchWindow(clock, { ...limits, ...changed }, () => isSaturated);
  for (let begun = 0; begun < running; begun += 1) window.begin();
  return window;
}

describe('when a batch is delayed', () => {
  test.each([
    ['under load it is delayed', freeBatches, {}, true],
    ['if few ledgers are at work it starts at once', freeBatches - 1, {}, false],
    ['if the node is not saturated it starts at once', freeBatches, { isSaturated: false }, false],
    ['if the store needs no delay it starts at once', freeBatches, { maxDelayMs: 0 }, false],
  ])('%s', (_, running, given, isDelayed) => {
    expect(windowWith(running, given).delay() !== null).toBe(isDelayed);
  });

  test('delayed batches count as work of their ledgers until they start', async () => {
    const window = windowWith(freeBatches);
    const delay = window.delay();
    window.end();
    const second = window.delay();
    expect(second).not.toBeNull();
    delay?.end();
    second?.end();
    await Promise.all([delay?.over, second?.over]);
    expect(window.delay()).toBeNull();
  });

  test('where one starts when another ends, the oldest starts, and one for each that ends', async () => {
    const window = windowWith(freeBatches, { startsWhenOneEnds: true });
    const started: string[] = [];
    for (const name of ['first', 'second']) void window.delay()?.over.then(() => started.push(name));
    await settled();
    expect(started).toEqual([]);
    window.end();
    await settled();
    expect(started).toEqual(['first']);
    window.begin();
    window.end();
    await settled();
    expect(started).toEqual(['first', 'second']);
  });

  test('where more batches run than may, the end of one starts none', async () => {
    const window = windowWith(freeBatches + 1, { startsWhenOneEnds: true });
    let isOver = false;
    void window.delay()?.over.then(() => {
      isOver = true;
    });
    window.end();
    await settled();
    expect(isOver).toBe(false);
    window.end();
    await settled();
    expect(isOver).toBe(true);
  });

  test('an ended delay leaves no timer behind', async () => {
    const clock = new ManualClock(startMs);
    const delay = windowWith(freeBatches, { clock }).delay();
    expect(clock.timers).toBe(1);
    delay?.end();
    await delay?.over;
    expect(clock.timers).toBe(0);
  });
});

describe('a ledger under load', () => {
  /** A ledger with a master, on a saturated node whose other ledgers are all at work. */
  async function loaded() {
    const world = rig();
    const batches = windowWith(freeBatches, { clock: world.clock });
    const actor = world.newActor({ batches });
    const opened = Promise.all([actor.submit(openLedger()), actor.submit(createMaster())]);
    await world.clock.advance(maxDelayMs);
    await opened;
    world.meter.batches.length = 0;
    const send = (count: number, payload = '{}') =>
      Promise.all(Array.from({ length: count }, () => actor.submit(append({ payload }))));
    return { ...world, actor, send };
  }

  test('writes all commands of the delay in one batch', async () => {
    const { clock, meter, send } = await loaded();
    const first = send(2);
    await clock.advance(maxDelayMs - 1);
    const second = send(3);
    await settled();
    expect(meter.batches).toEqual([]);
    await clock.advance(1);
    await Promise.all([first, second]);
    expect(meter.batches).toEqual([5]);
  });

  test.each([
    ['events', batchEventsMax, '{}'],
    ['bytes', 4, JSON.stringify({ text: 'x'.repeat(batchBytesMax / 4) })],
  ])('starts a batch at once when it is full by %s', async (_, count, payload) => {
    const { meter, send } = await loaded();
    const rest = send(count - 1, payload);
    await settled();
    expect(meter.batches).toEqual([]);
    void send(1, payload);
    await rest;
    expect(meter.batches[0]).toBeGreaterThanOrEqual(count - 1);
  });

  test('does not delay a read barrier', async () => {
    const { actor, send } = await loaded();
    const sent = send(1);
    await settled();
    expect(await actor.readBarrier()).toBe(3);
    await sent;
  });

  test('does not delay its last batches while it closes', async () => {
    const { actor, meter, send } = await loaded();
    const sent = send(batchEventsMax + 1);
    await settled();
    await actor.close();
    await sent;
    expect(meter.batches).toEqual([batchEventsMax, 1]);
  });
});

test('ledgers whose store hangs delay the batches of other ledgers by no more than the longest delay', async () => {
  const hanging = Promise.withResolvers<void>();
  const world = rig();
  const hung = storeWith(world.memory, { claim: () => hanging.promise.then(() => world.memory.claim(ledgerId)) });
  const batches = windowWith(0, { clock: world.clock });
  const others = Array.from({ length: freeBatches }, () => world.newActor({ batches, store: hung }));
  for (const actor of others) void actor.submit(openLedger());
  await settled();
  const opened = world.newActor({ batches }).submit(openLedger());
  await world.clock.advance(maxDelayMs);
  expect((await opened).replayed).toBe(false);
});
