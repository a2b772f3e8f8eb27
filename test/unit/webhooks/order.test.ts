import { describe, expect, test } from 'vitest';
import { ManualForwardClock } from '../../support/clock.ts';
import { append, createMaster, ledgerId, openLedger, supplier, uuid } from '../../support/commands.ts';
import { hookUrl, hour, second, subscribedOrder, webhookOrder } from '../../support/webhook-order.ts';
import { answer, heldReceiver } from '../../support/webhook-rig.ts';
import { recordsWith, rig, startMs } from '../../support/world.ts';

describe('order', () => {
  test('one delivery of a ledger is sent at a time, and two ledgers at once', async () => {
    const { receiver, waiting } = heldReceiver();
    const { world } = await subscribedOrder(receiver);
    await world.runToEnd(openLedger({ ledgerId: uuid(2) }), createMaster({ ledgerId: uuid(2), masterId: uuid(3) }));
    for (let step = 0; step < 3; step++) {
      for (const go of waiting.splice(0)) go();
      await world.quiet();
    }
    expect(waiting).toHaveLength(0);
    const before = world.posts.length;
    await world.runToEnd(append(), append(), append({ ledgerId: uuid(2), masterId: uuid(3) }));
    expect(world.posts.slice(before).map(({ event }) => event.ledger_id)).toEqual([ledgerId, uuid(2)]);
    for (const go of waiting.splice(0)) go();
    await world.quiet();
    expect(world.posts.slice(before).map(({ event }) => event.seq)).toEqual([3, 3, 4]);
  });

  test('a retry is overtaken, and the other deliveries keep their order', async () => {
    let failing = true;
    const { world } = await subscribedOrder(({ event }) => answer(event.seq === 4 && failing ? 500 : 200));
    await world.runToEnd(append(), append(), append());
    expect(world.posts.map(({ event }) => event.seq)).toEqual([3, 4, 5]);
    failing = false;
    await world.clock.advance(30 * second);
    await world.runToEnd(append());
    expect(world.posts.map(({ event }) => event.seq).sort()).toEqual([3, 4, 4, 5, 6]);
  });

  test('an event is not sent before its ledger’s cursor has passed it', async () => {
    const hold = Promise.withResolvers<void>();
    const world = await webhookOrder({
      wrapRecords: (inner) =>
        recordsWith(inner, {
          put: async (write) => {
            const put = await inner.put(write);
            if (write.kind === 'webhook_deliveries') await hold.promise;
            return put;
          },
        }),
    });
    const { id } = await world.subscribe(supplier, { url: hookUrl });
    await Promise.all([world.run(append()), world.run(append())]);
    await world.quiet();
    // The PING wakes the sender. The deliveries are recorded, and the cursor is before them.
    await world.ping(supplier, id);
    await world.quiet();
    expect(world.posts.map(({ event }) => event.event_type)).toEqual(['PING']);
    hold.resolve();
    await world.quiet();
    expect(world.posts.map(({ event }) => event.seq)).toEqual([null, 3, 4]);
  });
});

test.each([20 * second, hour])(
  'no event is lost if the machine’s clock is set back %d ms, and a retry waits twice as long at most',
  async (backMs) => {
    const world = await webhookOrder({ rig: rig({ clock: new ManualForwardClock(startMs) }) });
    // Otherwise the events would be dated before the subscription, like the opening of the ledger.
    await world.clock.advance(2 * hour);
    let failing = true;
    world.receivers.set(hookUrl, ({ event }) => answer(event.seq === 4 && failing ? 500 : 200));
    await world.subscribe(supplier, { url: hookUrl });
    world.clock.jump(-backMs);
    await world.runToEnd(append(), append(), append());
    expect(world.posts.map(({ event }) => event.seq)).toEqual([3, 4, 5]);
    failing = false;
    await world.advance(60 * second);
    expect(world.posts.map(({ event }) => event.seq)).toEqual([3, 4, 5, 4]);
  },
);

test('a delivery that is recorded as sent while a window is read is not sent again', async () => {
  let gate: Promise<void> | null = null;
  const world = await webhookOrder({
    wrapRecords: (inner) =>
      recordsWith(inner, {
        find: async (kind, lookup, page) => {
          const found = await inner.find(kind, lookup, page);
          if (lookup.name === 'pending') await gate;
          return found;
        },
      }),
  });
  const { receiver, waiting } = heldReceiver();
  world.receivers.set(hookUrl, receiver);
  await world.subscribe(supplier, { url: hookUrl });
  await world.runToEnd(append());
  const read = Promise.withResolvers<void>();
  gate = read.promise;
  // The second event wakes the sender, which reads the first one as PENDING too.
  await world.runToEnd(append());
  for (const go of waiting.splice(0)) go();
  await world.quiet();
  gate = null;
  read.resolve();
  await world.quiet();
  for (const go of waiting.splice(0)) go();
  await world.quiet();
  expect(world.posts.map(({ event }) => event.seq)).toEqual([3, 4]);
});
