import { describe, expect, test } from 'vitest';
import { append, createMaster, openLedger, supplier, uuid } from '../support/commands.ts';
import { subscribedOrder, webhookOrder } from '../support/webhook-order.ts';
import { heldReceiver, silent, type WebhookRig } from '../support/webhook-rig.ts';

describe('shares', () => {
  /** Ledgers with a master each, and so many events at once. */
  async function manyLedgers(world: WebhookRig, count: number, first = 100): Promise<void> {
    for (let at = 0; at < count; at++) {
      const ids = { ledgerId: uuid(first + at), masterId: uuid(10_000 + first + at) };
      await world.run(openLedger({ ledgerId: ids.ledgerId }), createMaster(ids), append(ids));
    }
  }

  test('a target has 4 at a time, however many ledgers wait for it', async () => {
    const { receiver, waiting } = heldReceiver();
    const { world } = await subscribedOrder(receiver);
    world.receivers.set('https://hooks.example/b', receiver);
    await world.subscribe(supplier, { url: 'https://hooks.example/b' });
    await manyLedgers(world, 10);
    await world.quiet();
    expect(waiting).toHaveLength(4);
    for (const go of waiting.splice(0)) go();
    await world.quiet();
    expect(waiting).toHaveLength(4);
  });

  test('targets that do not answer have 32 in all, and one that answers quickly is not held up', async () => {
    const world = await webhookOrder();
    for (let at = 0; at < 20; at++) {
      world.receivers.set(`https://dead-${at}.example/`, silent);
      await world.subscribe(supplier, { url: `https://dead-${at}.example/` });
    }
    await world.subscribe(supplier, { url: 'https://quick.example/' });
    await world.api.testWebhook(
      {
        $typeName: 'svc.v1.TestWebhookRequest',
        id: (await world.subscribe(supplier, { url: 'https://quick.example/', eventTypes: ['NEVER'] })).id,
      },
      world.call(supplier),
    );
    await world.quiet();
    await manyLedgers(world, 30);
    await world.quiet();
    const dead = world.posts.filter(({ url }) => url.includes('dead'));
    expect(dead).toHaveLength(32);
    const quick = world.posts.filter(({ url, event }) => url.includes('quick') && event.event_type !== 'PING');
    // GENESIS, ORDER_OPENED, master and event of each ledger.
    expect(quick).toHaveLength(120);
  });

  test('all together have 64', async () => {
    const world = await webhookOrder();
    const { receiver, waiting } = heldReceiver();
    for (let at = 0; at < 20; at++) {
      const target = `https://host-${at}.example/`;
      const { id } = await world.subscribe(supplier, { url: target });
      // Each has answered quickly once.
      await world.api.testWebhook({ $typeName: 'svc.v1.TestWebhookRequest', id }, world.call(supplier));
      await world.quiet();
      world.receivers.set(target, receiver);
    }
    await manyLedgers(world, 5);
    await world.quiet();
    expect(waiting).toHaveLength(64);
  });

  test('memory holds a window of what waits', async () => {
    const { world, id } = await subscribedOrder(silent);
    await Promise.all(Array.from({ length: 1_000 }, () => world.run(append())));
    await world.quiet();
    expect(world.webhooks.held).toBeLessThanOrEqual(32);
    expect((await world.deliveries(supplier, id)).count).toBe(1_000);
  });
});
