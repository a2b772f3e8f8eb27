import { describe, expect, test } from 'vitest';
import { LedgerNaming } from '../../../src/service/audit/ledger-naming.ts';
import { webhookNames } from '../../../src/service/audit/named-ledgers.ts';
import { LedgerReading } from '../../../src/service/reading/ledger-reading.ts';
import { deliveryIdOf } from '../../../src/service/webhooks/delivery-record.ts';
import { append, buyer, delegate, grant, ledgerId, revoke, supplier, uuid } from '../../support/commands.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { onlyDelivery, subscribedOrder, webhookOrder } from '../../support/webhook-order.ts';
import { answer, heldReceiver, type WebhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls } from '../../support/world.ts';

describe('redelivery', () => {
  const redeliver = (world: WebhookRig, id: string, deliveryId: string, actorId = supplier) =>
    world.api.redeliverWebhook({ $typeName: 'svc.v1.RedeliverWebhookRequest', id, deliveryId }, world.call(actorId));

  test('sends the event again as a delivery of its own', async () => {
    const { world, id } = await subscribedOrder(() => answer(200));
    await world.runToEnd(append());
    const first = await onlyDelivery(world, id);
    const { delivery } = await redeliver(world, id, first?.id ?? '');
    expect(delivery).toMatchObject({ eventId: first?.eventId, attempt: 0, eventType: 'SHIPMENT_DISPATCHED' });
    expect(delivery.id).not.toBe(first?.id);
    await world.quiet();
    expect(world.posts.map(({ event }) => event.id)).toEqual([first?.eventId, first?.eventId]);
    const { deliveries } = await world.deliveries(supplier, id);
    expect(deliveries.map(({ status }) => status)).toEqual(['DELIVERED', 'DELIVERED']);
  });

  test('is sent after the deliveries that waited before, whatever the age of its event', async () => {
    const { receiver, waiting } = heldReceiver();
    const { world, id } = await subscribedOrder(receiver);
    await world.runToEnd(append());
    for (const go of waiting.splice(0)) go();
    await world.quiet();
    const first = await onlyDelivery(world, id);
    await world.clock.advance(1_000);
    await world.runToEnd(append(), append());
    await world.clock.advance(1_000);
    await redeliver(world, id, first?.id ?? '');
    world.kill();
    const next = await world.resumed();
    expect(next.posts.map(({ event }) => event.seq)).toEqual([4, 5, 3]);
  });

  test('checks again whether the owner may read the event', async () => {
    const world = await webhookOrder();
    await world.run(grant({ access: 'read' }));
    const { id } = await world.subscribe(delegate);
    await world.runToEnd(append());
    await world.run(revoke());
    const [first] = (await world.deliveries(delegate, id)).deliveries;
    await redeliver(world, id, first?.id ?? '', delegate);
    await world.quiet();
    expect(world.posts).toHaveLength(1);
    const { deliveries } = await world.deliveries(delegate, id);
    expect(deliveries.map(({ status }) => status).sort()).toEqual(['DELIVERED', 'FAILED']);
  });

  test('names the ledger of the event for the access history, and looks it up once', async () => {
    const finds: string[] = [];
    const memory = new MemoryRecordStore();
    const records = beforeCalls(memory, {
      find: (_kind, lookup) => finds.push(lookup.name),
    });
    const world = await webhookOrder({ records });
    const { id } = await world.subscribe(supplier);
    await world.runToEnd(append());
    const first = await onlyDelivery(world, id);
    const named: (string | null)[] = [];
    const naming = webhookNames(
      new LedgerNaming(new LedgerReading(world.rig.memory, () => world.clock.now()), records),
    );
    const redelivered = async (deliveryId: string) => {
      const call = { ...world.call(supplier), named: (ledger: string | null) => void named.push(ledger) };
      const request = { $typeName: 'svc.v1.RedeliverWebhookRequest', id, deliveryId } as const;
      const answered = await world.api.redeliverWebhook(request, call).catch((error: unknown) => error);
      await naming.redeliverWebhook(request, call);
      return answered;
    };
    await redelivered(first?.id ?? '');
    expect(named).toEqual([ledgerId]);
    finds.length = 0;
    expect(await redelivered(deliveryIdOf(id, { id: 'nowhere', createdAt: first?.createdAt ?? '' }))).toMatchObject({
      code: 'not_found',
    });
    expect([named, finds.filter((name) => name === 'last_event')]).toEqual([[ledgerId], ['last_event']]);
  });

  test('is only for deliveries of the caller’s own subscription', async () => {
    const world = await webhookOrder();
    const { id } = await world.subscribe(supplier);
    await world.runToEnd(append());
    const [first] = (await world.deliveries(supplier, id)).deliveries;
    await expect(redeliver(world, id, first?.id ?? '', buyer)).rejects.toMatchObject({ code: 'not_found' });
    await expect(redeliver(world, id, uuid(1))).rejects.toMatchObject({ code: 'not_found' });
    // The time in this id cannot be written as a date.
    await expect(redeliver(world, id, 'f0000000-0000-7000-8000-000000000000')).rejects.toMatchObject({
      code: 'not_found',
    });
    const other = await world.subscribe(supplier);
    await expect(redeliver(world, other.id, first?.id ?? '')).rejects.toMatchObject({ code: 'not_found' });
    expect(world.posts).toHaveLength(1);
  });
});
