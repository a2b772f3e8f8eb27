import { describe, expect, test } from 'vitest';
import { isoTime } from '../../../src/domain/values/time.ts';
import { subscriptionsIn } from '../../../src/service/webhooks/subscription-record.ts';
import { append, supplier } from '../../support/commands.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { faultyRecordStore, type StoreFault } from '../../support/store-faults.ts';
import { hour, onlyDelivery, second, subscribedOrder, webhookOrder } from '../../support/webhook-order.ts';
import { answer, heldReceiver, type WebhookRig } from '../../support/webhook-rig.ts';
import { storeWith } from '../../support/world.ts';

describe('ends', () => {
  test('410 ends the subscription, and nothing more is sent', async () => {
    const { world, id } = await subscribedOrder(() => answer(410));
    await world.runToEnd(append(), append());
    expect(world.posts).toHaveLength(1);
    await world.run(append());
    await world.advance(3 * hour);
    expect(world.posts).toHaveLength(1);
    const listed = await world.api.listWebhooks({ $typeName: 'svc.v1.ListWebhooksRequest' }, world.call(supplier));
    expect(listed.subscriptions).toMatchObject([{ id, active: false }]);
    const { deliveries } = await world.deliveries(supplier, id);
    expect(deliveries.map(({ status, lastResponseStatus }) => [status, lastResponseStatus])).toEqual([
      ['FAILED', 410],
      ['FAILED', undefined],
    ]);
  });

  test('after a DELETE nothing is sent, after a restart too, and PENDING deliveries read as FAILED', async () => {
    const { world, id } = await subscribedOrder(() => answer(500));
    await world.runToEnd(append());
    await world.unsubscribe(supplier, id);
    await world.run(append());
    world.kill();
    const next = world.restarted();
    next.webhooks.start();
    await next.advance(3 * hour);
    expect([world.posts.length, next.posts.length]).toEqual([1, 0]);
    expect(await onlyDelivery(next, id)).toMatchObject({
      status: 'FAILED',
      nextAttemptAt: undefined,
      lastError: 'The subscription has ended.',
    });
  });

  test('a subscription that is deleted while its event is being read is sent nothing', async () => {
    const { world, id } = await subscribedOrder(() => answer(500));
    await world.runToEnd(append());
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
    const next = await world.resumed({ ledgers });
    const held = Promise.withResolvers<void>();
    gate = held.promise;
    reads = 0;
    await next.advance(30 * second);
    expect([reads > 0, next.posts]).toEqual([true, []]);
    await next.unsubscribe(supplier, id);
    held.resolve();
    await next.quiet();
    expect(next.posts).toEqual([]);
    expect(await onlyDelivery(next, id)).toMatchObject({ status: 'FAILED', lastError: 'The subscription has ended.' });
  });

  test('stopping waits for running attempts, records them, and begins no new ones', async () => {
    const { receiver, waiting } = heldReceiver();
    const { world, id } = await subscribedOrder(receiver);
    await world.runToEnd(append(), append());
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

describe('a DELETE whose writes fail', () => {
  /** A subscription whose DELETE failed at its write of this number. */
  async function failedDelete(write: number, fault: StoreFault) {
    let left = Number.POSITIVE_INFINITY;
    const records = faultyRecordStore(new MemoryRecordStore(), (operation) => {
      if (operation !== 'record-write') return null;
      left -= 1;
      return left === 0 ? fault : null;
    });
    const world = await webhookOrder({ records });
    const { id } = await world.subscribe(supplier);
    await world.runToEnd(append());
    expect(world.posts).toHaveLength(1);
    left = write;
    const code = write === 1 && fault === 'unavailable' ? 'unavailable' : 'outcome_unknown';
    await expect(deleted(world, id)).rejects.toMatchObject({ code });
    await world.quiet();
    return { world, id };
  }
  /** A DELETE so much later than the first one: without the Idempotency-Key. With the key it has the same time. */
  const deleted = (world: WebhookRig, id: string, laterMs = 0) =>
    world.api.deleteWebhook(
      { $typeName: 'svc.v1.DeleteWebhookRequest', id },
      { ...world.call(supplier), now: world.clock.now() + laterMs },
    );
  const sentNow = async (world: WebhookRig) => {
    const before = world.posts.length;
    await world.runToEnd(append());
    return world.posts.length - before;
  };

  test('and do not land: the subscription stays active, and a retry ends it', async () => {
    const { world, id } = await failedDelete(1, 'unavailable');
    expect(await sentNow(world)).toBe(1);
    await deleted(world, id);
    expect(await sentNow(world)).toBe(0);
  });

  test.each([
    ['its record did not land', 1, 'lost'],
    ['its record landed', 1, 'applied'],
    ['the change was not noted', 2, 'unavailable'],
    ['the change was noted', 2, 'applied'],
  ] as const)(
    'with an unknown outcome, while %s: nothing is sent, and only a retry with its key succeeds',
    async (_what, write, fault) => {
      const { world, id } = await failedDelete(write, fault);
      expect(await sentNow(world)).toBe(0);
      await expect(deleted(world, id, 1)).rejects.toMatchObject({ code: 'not_found', details: { field: 'id' } });
      expect(await deleted(world, id)).toEqual({});
      expect(await sentNow(world)).toBe(0);
    },
  );

  test('a retry removes a subscription from memory that has ended in the store', async () => {
    const world = await webhookOrder();
    const { id } = await world.subscribe(supplier);
    expect(await sentNow(world)).toBe(1);
    await subscriptionsIn(world.records).end(id, isoTime(world.clock.now()), 'receiver');
    await expect(deleted(world, id)).rejects.toMatchObject({ code: 'not_found' });
    expect(await sentNow(world)).toBe(0);
  });
});
