import { describe, expect, test } from 'vitest';
import { isoTime } from '../../../src/domain/values/time.ts';
import { changesWaitingByDefault } from '../../../src/service/records/change-mutex.ts';
import { type SubscriptionRecord, subscriptionsIn } from '../../../src/service/webhooks/subscription-record.ts';
import { settled } from '../../support/clock.ts';
import { buyer, supplier } from '../../support/commands.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { slowRecords } from '../../support/slow-records.ts';
import { faultyRecordStore, scriptedFaults } from '../../support/store-faults.ts';
import { webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls, codeOf, recordsWith } from '../../support/world.ts';

test('no record holds the secret in plain text', async () => {
  const written: string[] = [];
  const memory = new MemoryRecordStore();
  const records = beforeCalls(memory, {
    put: (write) => written.push(JSON.stringify(write)),
  });
  const world = webhookRig({ records });
  const { id, secret } = await world.subscribe(supplier);
  expect((await records.get('webhook_subscription', id))?.value).toContain('"sealedSecret":"');
  expect(written.join('\n')).not.toContain(secret.replace(/^whsec_/, ''));
  expect(written.join('\n')).not.toContain(Buffer.from(secret).toString('base64'));
});

test('an actor has a thousand active subscriptions at most', async () => {
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
  await world.unsubscribe(supplier, id);
  await world.subscribe(supplier);
  await expect(world.subscribe(supplier)).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('calls that run at once do not make more than a thousand', async () => {
  const world = webhookRig();
  const subscriptions = subscriptionsIn(world.records);
  const made = isoTime(world.clock.now());
  for (let at = 0; at < 995; at++) await subscriptions.create(subscription(`made-${at}`, made));
  const results = await Promise.allSettled(Array.from({ length: 20 }, () => world.subscribe(supplier)));
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
  expect(await subscriptions.hasInForce(supplier, 1_001)).toBe(false);
});

test('creations of an actor wait up to CHANGES_WAITING, and one whose call ends leaves without work', async () => {
  const slow = slowRecords(new MemoryRecordStore());
  let looked = 0;
  const records = beforeCalls(slow.records, { find: () => void looked++ });
  const world = webhookRig({ records });
  const request = { $typeName: 'svc.v1.CreateWebhookRequest' as const, url: 'https://hooks.example/', eventTypes: [] };
  const create = ({ signal } = new AbortController()) =>
    codeOf(world.api.createWebhook(request, { ...world.call(supplier), signal }));
  slow.next('hangs');
  const first = create();
  await settled();
  const ending = new AbortController();
  const ended = Array.from({ length: changesWaitingByDefault }, () => create(ending));
  await settled();
  await expect(world.subscribe(supplier)).rejects.toMatchObject({
    code: 'overloaded',
    details: { bound: 'CHANGES_WAITING' },
  });
  await world.subscribe(buyer);
  const before = looked;
  ending.abort();
  expect(new Set(await Promise.all(ended))).toEqual(new Set(['unavailable']));
  expect(looked).toBe(before);
  const next = create();
  await settled();
  await slow.land();
  expect(await Promise.all([first, next])).toEqual(['carried out', 'carried out']);
  expect(await subscriptionsIn(records).hasInForce(supplier, 3)).toBe(false);
});

test('two runs of the call that makes the thousandth subscription both get it', async () => {
  const world = webhookRig();
  const subscriptions = subscriptionsIn(world.records);
  const made = isoTime(world.clock.now());
  for (let at = 0; at < 999; at++) await subscriptions.create(subscription(`made-${at}`, made));
  const once = world.call(supplier);
  const [id, bytes] = [once.newId(), once.randomBytes(32)];
  const url = 'https://hooks.example/';
  const request = { $typeName: 'svc.v1.CreateWebhookRequest' as const, url, eventTypes: [] };
  const run = () => world.api.createWebhook(request, { ...once, newId: () => id, randomBytes: () => bytes });
  const [first, second] = await Promise.all([run(), run()]);
  expect(first.id).toBe(id);
  expect(second).toEqual(first);
  await expect(world.subscribe(supplier)).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('the newest active subscription is the one with the latest date, whichever was written last', async () => {
  const subscriptions = subscriptionsIn(new MemoryRecordStore());
  expect(await subscriptions.newestInForce()).toBeNull();
  const make = (id: string, createdAt: string) => subscriptions.create(subscription(id, createdAt));
  await make('a', '2026-11-21T03:00:00.000Z');
  await make('b', '2026-11-21T02:00:00.000Z');
  expect((await subscriptions.newestInForce())?.id).toBe('a');
  await subscriptions.end('a', '2026-11-21T04:00:00.000Z', 'owner');
  expect((await subscriptions.newestInForce())?.id).toBe('b');
});

describe('a subscription that is ended again', () => {
  const ended = '2026-11-21T04:00:00.000Z';

  /**
   * A subscription that `end` has ended. `failing`: the change could not be noted at first. `notes`: writes of the
   * record that counts changes.
   */
  async function endedOnce(failing: boolean) {
    const memory = new MemoryRecordStore();
    const faults = scriptedFaults();
    const faulty = faultyRecordStore(memory, faults.choose);
    let notes = 0;
    const subscriptions = subscriptionsIn(
      recordsWith(memory, {
        put: (write) => {
          if (write.kind !== 'webhook_changes') return memory.put(write);
          notes += 1;
          return faulty.put(write);
        },
      }),
    );
    await subscriptions.create(subscription('a', '2026-11-21T03:00:00.000Z'));
    const before = await subscriptions.changes();
    if (failing) faults.fail('record-write', 'unavailable');
    const first = subscriptions.end('a', ended, 'owner');
    if (failing) await expect(first).rejects.toMatchObject({ code: 'outcome_unknown' });
    else expect(await first).toBe(true);
    return { subscriptions, before, faults, notes: () => notes };
  }

  test('with the same time and author finishes the first end, and notes its change', async () => {
    const { subscriptions, before } = await endedOnce(true);
    expect(await subscriptions.changes()).toBe(before);
    expect(await subscriptions.end('a', ended, 'owner')).toBe(true);
    expect(await subscriptions.changes()).not.toBe(before);
  });

  test.each([
    ['later', '2026-11-21T04:00:59.000Z', 'owner'],
    ['by another', ended, 'receiver'],
  ] as const)(
    '%s, within a minute, tries to note the change too, and answers that it had ended',
    async (_what, at, by) => {
      const { subscriptions, before, faults } = await endedOnce(true);
      faults.fail('record-write', 'unavailable');
      expect(await subscriptions.end('a', at, by)).toBe(false);
      expect(await subscriptions.changes()).toBe(before);
      expect(await subscriptions.end('a', at, by)).toBe(false);
      expect(await subscriptions.changes()).not.toBe(before);
    },
  );

  test('later does not write to the record that all nodes share', async () => {
    const { subscriptions, notes } = await endedOnce(false);
    const before = notes();
    expect(await subscriptions.end('a', '2026-11-21T04:01:01.000Z', 'owner')).toBe(false);
    expect(notes()).toBe(before);
  });
});

test('a change is noted in two writes at most, however often others note theirs', async () => {
  const memory = new MemoryRecordStore();
  let notes = 0;
  const subscriptions = subscriptionsIn(
    recordsWith(memory, {
      put: async (write) => {
        if (write.kind === 'webhook_changes') {
          notes += 1;
          if (notes <= 10) await memory.put(write);
        }
        return memory.put(write);
      },
    }),
  );
  await subscriptions.create(subscription('a', '2026-11-21T03:00:00.000Z'));
  expect([notes, (await memory.get('webhook_changes', 'subscriptions'))?.value]).toEqual([2, '2']);
});

test('the end of an unknown subscription changes nothing', async () => {
  const subscriptions = subscriptionsIn(new MemoryRecordStore());
  const before = await subscriptions.changes();
  expect(await subscriptions.end('a', '2026-11-21T04:00:00.000Z', 'owner')).toBe(false);
  expect(await subscriptions.changes()).toBe(before);
});

function subscription(id: string, createdAt: string): SubscriptionRecord {
  const target = { url: 'https://hooks.example/', eventTypes: [], ledgerId: null };
  return { id, actorId: supplier, ...target, createdAt, sealedSecret: '', endedAt: null, endedBy: null };
}
