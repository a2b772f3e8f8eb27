import { expect, test } from 'vitest';
import { isoTime } from '../../src/domain/time.ts';
import { type SubscriptionRecord, subscriptionsIn } from '../../src/service/webhooks/subscription-record.ts';
import { MemoryRecordStore } from '../../src/store/memory/record-store.ts';
import { buyer, supplier } from '../support/commands.ts';
import { faultyRecordStore, scriptedFaults } from '../support/store-faults.ts';
import { webhookRig } from '../support/webhook-rig.ts';
import { recordsWith } from '../support/world.ts';

test('the secret stands in no record as it is', async () => {
  const written: string[] = [];
  const memory = new MemoryRecordStore();
  const records = recordsWith(memory, {
    put: (write) => {
      written.push(JSON.stringify(write));
      return memory.put(write);
    },
  });
  const world = webhookRig({ records });
  const { id, secret } = await world.subscribe(supplier);
  expect((await records.get('webhook_subscription', id))?.value).toContain('"sealedSecret":"');
  expect(written.join('\n')).not.toContain(secret.replace(/^whsec_/, ''));
  expect(written.join('\n')).not.toContain(Buffer.from(secret).toString('base64'));
});

test('an actor has a thousand subscriptions at most; one that has ended counts no more, and others’ do not count', async () => {
  const world = webhookRig();
  const subscriptions = subscriptionsIn(world.records);
  const made = isoTime(world.clock.now());
  for (let at = 0; at < 999; at++) await subscriptions.create(subscription(`made-${at}`, made));
  await world.subscribe(buyer);
  const { id } = await world.subscribe(supplier);
  await expect(world.subscribe(supplier)).rejects.toMatchObject({
    code: 'invalid_argument',
    details: { limit: 1_000 },
  });
  await world.subscribe(buyer);
  await world.api.deleteWebhook({ $typeName: 'svc.v1.DeleteWebhookRequest', id }, world.call(supplier));
  await world.subscribe(supplier);
  await expect(world.subscribe(supplier)).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('the newest subscription in force is the one of the latest date, whichever was written last', async () => {
  const subscriptions = subscriptionsIn(new MemoryRecordStore());
  expect(await subscriptions.newestInForce()).toBeNull();
  const make = (id: string, createdAt: string) => subscriptions.create(subscription(id, createdAt));
  await make('a', '2026-11-21T03:00:00.000Z');
  await make('b', '2026-11-21T02:00:00.000Z');
  expect((await subscriptions.newestInForce())?.id).toBe('a');
  await subscriptions.end('a', '2026-11-21T04:00:00.000Z', 'owner');
  expect((await subscriptions.newestInForce())?.id).toBe('b');
});

test('a change that could not be noted is noted when the subscription is ended again', async () => {
  const memory = new MemoryRecordStore();
  const faults = scriptedFaults();
  const subscriptions = subscriptionsIn(
    recordsWith(memory, { put: (write) => (write.kind === 'webhook_changes' ? faulty.put(write) : memory.put(write)) }),
  );
  const faulty = faultyRecordStore(memory, faults.choose);
  await subscriptions.create(subscription('a', '2026-11-21T03:00:00.000Z'));
  const before = await subscriptions.changes();
  faults.fail('record-write', 'unavailable');
  const end = () => subscriptions.end('a', '2026-11-21T04:00:00.000Z', 'receiver');
  await expect(end()).rejects.toMatchObject({ code: 'outcome_unknown' });
  expect(await subscriptions.changes()).toBe(before);
  expect(await end()).toBe(false);
  expect(await subscriptions.changes()).not.toBe(before);
});

function subscription(id: string, createdAt: string): SubscriptionRecord {
  const target = { url: 'https://hooks.example/', eventTypes: [], ledgerId: null };
  return { id, actorId: supplier, ...target, createdAt, sealedSecret: '', endedAt: null, endedBy: null };
}
