import { describe, expect, test } from 'vitest';
import { append, ledgerId, supplier } from '../../support/commands.ts';
import { hookUrl, webhookOrder } from '../../support/webhook-order.ts';
import { beforeCalls } from '../../support/world.ts';

describe('shards', () => {
  test('a node tails and sends for its own shards, also after it takes over and gives up some', async () => {
    let own = new Set<string>();
    const world = await webhookOrder({ ownsShardOf: (id) => own.has(id) });
    const { id } = await world.subscribe(supplier, { url: hookUrl });
    await world.runToEnd(append());
    expect([world.posts.length, (await world.deliveries(supplier, id)).count]).toEqual([0, 0]);

    const takeOver = (one: string, all: string[]) =>
      world.webhooks.takeOver(
        (id) => id === one,
        () => {
          own = new Set(all);
        },
      );
    await takeOver(ledgerId, [ledgerId]);
    await world.quiet();
    expect([world.posts.length, (await world.deliveries(supplier, id)).count]).toEqual([0, 1]);

    await takeOver(id, [ledgerId, id]);
    await world.quiet();
    expect(world.posts.map(({ event }) => event.seq)).toEqual([3]);

    own = new Set();
    world.webhooks.giveUp(() => true);
    await world.runToEnd(append());
    expect([world.posts.length, (await world.deliveries(supplier, id)).count]).toEqual([1, 1]);
  });

  test('a ledger that is given up in the middle of a range: the other node’s records stay', async () => {
    const recorded = Promise.withResolvers<void>();
    const held = { made: 0, isOwned: true, isRecording: true };
    const world = await webhookOrder({
      ownsShardOf: (id) => id !== ledgerId || held.isOwned,
      wrapRecords: (inner) =>
        beforeCalls(inner, {
          put: async (write) => {
            if (write.kind === 'webhook_deliveries' && write.replaces === 'absent' && held.isRecording) {
              held.made += 1;
              held.isOwned = false;
              await recorded.promise;
            }
          },
        }),
    });
    let last = '';
    for (let at = 0; at < 200; at++) last = (await world.subscribe(supplier, { url: `https://hook${at}.example/` })).id;
    await world.runToEnd(append());
    world.webhooks.giveUp((id) => id === ledgerId);
    recorded.resolve();
    await world.quiet();
    expect(held.made).toBe(1);
    held.isRecording = false;
    const other = await world.resumed();
    await other.runToEnd(append(), append());
    held.isOwned = true;
    await world.webhooks.takeOver(
      (id) => id === ledgerId,
      () => {},
    );
    await world.run(append());
    await Promise.all([world.quiet(), other.quiet()]);
    const { deliveries } = await world.deliveries(supplier, last);
    expect(deliveries).toHaveLength(4);
    expect(new Set(deliveries.map(({ eventId }) => eventId)).size).toBe(4);
  });

  test('two nodes that both tail a ledger record each delivery once', async () => {
    const world = await webhookOrder();
    const other = world.restarted();
    other.webhooks.start();
    const { id } = await world.subscribe(supplier, { url: hookUrl });
    other.webhooks.subscribed(world.webhooks.subscription(id) ?? expect.fail('it is not there'));
    for (let round = 0; round < 20; round++) {
      await Promise.all([world.run(append()), world.run(append())]);
      other.webhooks.committed(ledgerId, []);
    }
    await world.quiet();
    await other.quiet();
    const { deliveries } = await world.deliveries(supplier, id);
    expect(deliveries.map(({ status }) => status)).toEqual(Array(40).fill('DELIVERED'));
    const arrived = [...world.posts, ...other.posts].map(({ event }) => event.seq);
    expect(new Set(arrived)).toEqual(new Set(Array.from({ length: 40 }, (_, at) => at + 3)));
  });
});
