import { describe, expect, test } from 'vitest';
import { append, supplier } from '../support/commands.ts';
import { hour, onlyDelivery, second, subscribedOrder } from '../support/webhook-order.ts';
import { answer, heldReceiver } from '../support/webhook-rig.ts';
import { storeWith } from '../support/world.ts';

describe('ends', () => {
  test('410 ends the subscription, and nothing more is sent', async () => {
    const { world, id } = await subscribedOrder(() => answer(410));
    await world.run(append(), append());
    await world.quiet();
    expect(world.posts).toHaveLength(1);
    await world.run(append());
    await world.clock.advance(3 * hour);
    await world.quiet();
    expect(world.posts).toHaveLength(1);
    const listed = await world.api.listWebhooks({ $typeName: 'svc.v1.ListWebhooksRequest' }, world.call(supplier));
    expect(listed.subscriptions).toMatchObject([{ id, active: false }]);
    const { deliveries } = await world.deliveries(supplier, id);
    expect(deliveries.map(({ status, lastResponseStatus }) => [status, lastResponseStatus])).toEqual([
      ['FAILED', 410],
      ['FAILED', undefined],
    ]);
  });

  test('a deleted subscription sends nothing more, not after a restart either, and its PENDING deliveries read as FAILED', async () => {
    const { world, id } = await subscribedOrder(() => answer(500));
    await world.run(append());
    await world.quiet();
    await world.api.deleteWebhook({ $typeName: 'svc.v1.DeleteWebhookRequest', id }, world.call(supplier));
    await world.run(append());
    world.kill();
    const next = world.restarted();
    next.webhooks.start();
    await next.clock.advance(3 * hour);
    await next.quiet();
    expect([world.posts.length, next.posts.length]).toEqual([1, 0]);
    expect(await onlyDelivery(next, id)).toMatchObject({
      status: 'FAILED',
      nextAttemptAt: undefined,
      lastError: 'The subscription has ended.',
    });
  });

  test('a subscription that is deleted while its event is being read is sent nothing', async () => {
    const { world, id } = await subscribedOrder(() => answer(500));
    await world.run(append());
    await world.quiet();
    world.kill();
    let gate: Promise<void> | null = null;
    let reads = 0;
    const ledgers = storeWith(world.rig.memory, {
      read: async (...given) => {
        reads += 1;
        await gate;
        return world.rig.memory.read(...given);
      },
    });
    const next = world.restarted({ ledgers });
    next.webhooks.start();
    await next.quiet();
    const held = Promise.withResolvers<void>();
    gate = held.promise;
    reads = 0;
    await next.clock.advance(30 * second);
    await next.quiet();
    expect([reads > 0, next.posts]).toEqual([true, []]);
    await next.api.deleteWebhook({ $typeName: 'svc.v1.DeleteWebhookRequest', id }, next.call(supplier));
    held.resolve();
    await next.quiet();
    expect(next.posts).toEqual([]);
    expect(await onlyDelivery(next, id)).toMatchObject({ status: 'FAILED', lastError: 'The subscription has ended.' });
  });

  test('stopping waits for what is under way, records it, and begins nothing more', async () => {
    const { receiver, waiting } = heldReceiver();
    const { world, id } = await subscribedOrder(receiver);
    await world.run(append(), append());
    await world.quiet();
    let stopped = false;
    const stopping = world.webhooks[Symbol.asyncDispose]().then(() => {
      stopped = true;
    });
    await world.quiet();
    expect(stopped).toBe(false);
    for (const go of waiting) go();
    await stopping;
    expect(world.posts).toHaveLength(1);
    const { deliveries } = await world.deliveries(supplier, id);
    expect(deliveries.map(({ status }) => status)).toEqual(['DELIVERED', 'PENDING']);
  });
});
