import { describe, expect, test } from 'vitest';
import { isoTime } from '../../../src/domain/values/time.ts';
import { changesWaitingByDefault } from '../../../src/service/records/change-mutex.ts';
import { Walk } from '../../../src/service/walking/walk.ts';
import { answeredSeqsIn } from '../../../src/service/webhooks/answered-seqs.ts';
import { type SubscriptionRecord, subscriptionsIn } from '../../../src/service/webhooks/subscription-record.ts';
import { settled } from '../../support/clock.ts';
import { buyer, ledgerId, openLedger, supplier } from '../../support/commands.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { slowRecords } from '../../support/slow-records.ts';
import { faultyRecordStore, scriptedFaults } from '../../support/store-faults.ts';
import { webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls, codeOf, recordsWith } from '../../support/world.ts';

const starting = 'webhook_start';

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

test('calls that run at once do not make more than a thousand, and those refused store nothing', async () => {
  const starts: string[] = [];
  const records = beforeCalls(new MemoryRecordStore(), { put: ({ kind, id }) => kind === starting && starts.push(id) });
  const world = webhookRig({ records });
  await world.run(openLedger());
  const subscriptions = subscriptionsIn(world.records);
  const made = isoTime(world.clock.now());
  for (let at = 0; at < 995; at++) await subscriptions.create(subscription(`made-${at}`, made));
  const results = await Promise.allSettled(Array.from({ length: 20 }, () => world.subscribe(supplier)));
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
  expect(starts).toHaveLength(5);
  expect(await subscriptions.hasInForce(supplier, 1_001)).toBe(false);
});

describe('creations of an actor', () => {
  const request = { $typeName: 'svc.v1.CreateWebhookRequest' as const, url: 'https://hooks.example/', eventTypes: [] };

  /** A world with a ledger, where the first write of a creation hangs. `writes`: kinds and ids, in order. */
  async function creating() {
    const slow = slowRecords(new MemoryRecordStore());
    let looked = 0;
    const writes: string[] = [];
    const records = beforeCalls(slow.records, {
      find: () => void looked++,
      put: ({ kind, id }) => void writes.push(`${kind} ${id}`),
    });
    const world = webhookRig({ records });
    await world.run(openLedger());
    let placesTaken = 0;
    const places = {
      take: () => {
        placesTaken += 1;
        return null;
      },
      leave: () => {},
    };
    const create = ({ signal } = new AbortController(), call = world.call(supplier)) => {
      const walk = new Walk({ places, memory: world.memory }, supplier, signal);
      return codeOf(world.api.createWebhook(request, { ...call, signal, walk }).finally(() => walk.end()));
    };
    slow.next('hangs');
    const first = create();
    await settled();
    return { world, slow, create, first, writes, looked: () => looked, placesTaken: () => placesTaken };
  }

  test('wait up to CHANGES_WAITING, and one whose call ends leaves without work', async () => {
    const { world, slow, create, first, looked } = await creating();
    const ending = new AbortController();
    const ended = Array.from({ length: changesWaitingByDefault }, () => create(ending));
    await settled();
    await expect(world.subscribe(supplier)).rejects.toMatchObject({
      code: 'overloaded',
      details: { bound: 'CHANGES_WAITING' },
    });
    await world.subscribe(buyer);
    const before = looked();
    ending.abort();
    expect(new Set(await Promise.all(ended))).toEqual(new Set(['unavailable']));
    expect(looked()).toBe(before);
    const next = create();
    await settled();
    await slow.land();
    expect(await Promise.all([first, next])).toEqual(['carried out', 'carried out']);
    expect(await subscriptionsIn(world.records).hasInForce(supplier, 3)).toBe(false);
  });

  test('that wait, are refused or given up have no place among the reads, and store nothing', async () => {
    const { slow, create, first, writes, placesTaken } = await creating();
    const ending = new AbortController();
    const ended = Array.from({ length: changesWaitingByDefault }, () => create(ending));
    expect(await create()).toBe('overloaded');
    await settled();
    expect([placesTaken(), writes]).toEqual([1, [expect.stringMatching(/^webhook_start /)]]);
    ending.abort();
    await Promise.all(ended);
    expect([placesTaken(), writes]).toEqual([1, [expect.stringMatching(/^webhook_start /)]]);
    await slow.land();
    expect(await first).toBe('carried out');
  });

  test('that can only fail are refused without waiting', async () => {
    const { world, slow, first } = await creating();
    await expect(world.subscribe(supplier, { url: 'no url' })).rejects.toMatchObject({ code: 'invalid_argument' });
    await slow.land();
    await first;
  });

  test('whose subscription exists are answered, although others fill the queue', async () => {
    const { world, slow, create, first } = await creating();
    const once = world.call(supplier);
    const id = once.newId();
    const again = () => create(undefined, { ...once, newId: () => id });
    const made = again();
    await slow.land();
    expect(await Promise.all([first, made])).toEqual(['carried out', 'carried out']);
    slow.next('hangs');
    const others = Array.from({ length: 1 + changesWaitingByDefault }, () => create());
    await settled();
    expect(await create()).toBe('overloaded');
    expect(await again()).toBe('carried out');
    await slow.land();
    expect(new Set(await Promise.all(others))).toEqual(new Set(['carried out']));
  });

  test('that run twice at once keep the start that the first run found', async () => {
    const slow = slowRecords(new MemoryRecordStore());
    const world = webhookRig({ records: slow.records });
    const once = world.call(supplier);
    const id = once.newId();
    const create = () =>
      world.api.createWebhook(request, { ...once, newId: () => id, randomBytes: (count) => Buffer.alloc(count, 1) });
    slow.next('hangs');
    const first = create();
    await settled();
    const second = create();
    await settled();
    // The subscription that the first run makes has this event.
    await world.runToEnd(openLedger());
    await slow.land();
    expect(await second).toEqual(await first);
    expect(await answeredSeqsIn(slow.records).of(id, ledgerId)).toBe(-1);
  });
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
