import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { names } from '../../../src/domain/event/projection.ts';
import { watchUnreadable } from '../../../src/node/unreadable-records.ts';
import { createLog } from '../../../src/runtime/telemetry/log.ts';
import { collection } from '../../../src/service/records/collection.ts';
import { text } from '../../../src/service/records/record-form.ts';
import { boundedLedgers } from '../../../src/service/walking/bounded-stores.ts';
import { unboundedWalk } from '../../../src/service/walking/walk.ts';
import { blockKind } from '../../../src/service/webhooks/delivery-block.ts';
import { requestedKind } from '../../../src/service/webhooks/requested-deliveries.ts';
import { seqsToStartAfter } from '../../../src/service/webhooks/start-seqs.ts';
import { subscriptionsIn } from '../../../src/service/webhooks/subscription-record.ts';
import type { Lookup, RecordStore } from '../../../src/store/record-store.ts';
import { tellUnreadable, UnreadableRecord } from '../../../src/store/unreadable-record.ts';
import { append, buyer, createMaster, ledgerId, openLedger, supplier } from '../../support/commands.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { deliveriesAt, minuteMs, subscriptionId } from '../../support/webhook-deliveries.ts';
import { typesSent, webhookRig } from '../../support/webhook-rig.ts';
import { storeWith } from '../../support/world.ts';

const logged: string[] = [];
let registry = new Registry();
let unwatch = () => {};
beforeEach(() => {
  logged.length = 0;
  registry = new Registry();
  unwatch = watchUnreadable({ log: createLog('error', { write: (line) => void logged.push(line) }), registry });
});
afterEach(() => unwatch());

const countOf = async (kind: string) =>
  Number(
    new RegExp(`^svc_unreadable_records_total\\{kind="${kind}"\\} (\\d+)$`, 'm').exec(await registry.metrics())?.[1] ??
      0,
  );

/** Replaces a record's value, and leaves it where it is found. */
async function damage(records: RecordStore, kind: string, id: string, value: string, lookups: readonly Lookup[]) {
  const current = await records.get(kind, id);
  const put = await records.put({ kind, id, replaces: current?.version ?? 'absent', value, lookups });
  expect(put.ok).toBe(true);
}

const damagedValues = ['', 'no JSON', 'null', '[]', '{}', '7'];

describe('a subscription that cannot be read', () => {
  /** Two subscriptions to one ledger: the first of which is damaged. */
  async function twoSubscriptions(value: string | null) {
    const world = webhookRig();
    await world.runToEnd(openLedger(), createMaster());
    const damaged = await world.subscribe(buyer, { url: 'https://one.example/' });
    await world.subscribe(supplier, { url: 'https://two.example/' });
    await world.quiet();
    const kind = 'webhook_subscription';
    const stored = await world.records.get(kind, damaged.id);
    const { createdAt } = JSON.parse(stored?.value ?? '') as { createdAt: string };
    const order = `${createdAt}|${damaged.id}`;
    const another = stored?.value.replace(damaged.id, '0193a000-0000-7000-8000-00000000abcd') ?? '';
    await damage(world.records, kind, damaged.id, value ?? another, [
      { name: 'actor', value: buyer, order },
      { name: 'in_force', value: 'all', order },
      { name: 'in_force_of', value: buyer, order },
    ]);
    world.kill();
    const restarted = world.restarted();
    restarted.webhooks.start();
    return { restarted, damaged, order };
  }

  test.each([...damagedValues, null])('stops nobody else’s deliveries: %j', async (value) => {
    const { restarted } = await twoSubscriptions(value);
    await restarted.runToEnd(append());
    expect(typesSent(restarted, 'https://two.example/').length).toBe(1);
    expect(await countOf('webhook_subscription')).toBeGreaterThan(0);
    expect(logged.filter((line) => line.includes('webhook_subscription')).length).toBe(1);
  });

  test('hides none that stands behind it, however short the page is', async () => {
    const { restarted, damaged } = await twoSubscriptions('{}');
    const subscriptions = subscriptionsIn(restarted.records);
    const first = await subscriptions.inForce({ limit: 1 });
    expect(first.map(({ actorId }) => actorId)).toEqual([supplier]);
    expect((await subscriptions.newestInForce())?.actorId).toBe(supplier);
    await expect(subscriptions.get(damaged.id)).rejects.toBeInstanceOf(UnreadableRecord);
  });
});

test.each(['', 'no JSON', 'null', '[]', '{}', 'NaN', '-1', '1.5'])(
  'a count of changes that says %j is begun anew, and each change after it is noticed',
  async (value) => {
    const world = webhookRig();
    const subscriptions = subscriptionsIn(world.records);
    const changes = new Set([await subscriptions.changes()]);
    await world.subscribe(supplier);
    changes.add(await subscriptions.changes());
    await damage(world.records, 'webhook_changes', 'subscriptions', value, []);
    for (const count of ['1', '2', '3']) {
      await world.subscribe(supplier);
      expect((await world.records.get('webhook_changes', 'subscriptions'))?.value).toBe(count);
      changes.add(await subscriptions.changes());
    }
    expect([changes.size, await countOf('webhook_changes')]).toEqual([5, 1]);
    expect(logged.filter((line) => line.includes('webhook_changes'))).toHaveLength(1);
  },
);

test.each(damagedValues)('a cursor that says %j misses no event, though some are sent again', async (value) => {
  const world = webhookRig();
  await world.runToEnd(openLedger(), createMaster());
  await world.subscribe(supplier, { url: 'https://two.example/' });
  await world.runToEnd(append());
  expect(typesSent(world).length).toBe(1);
  await damage(world.records, 'webhook_cursor', ledgerId, value, []);
  world.kill();
  const restarted = await world.resumed();
  await restarted.runToEnd(append());
  expect(new Set(restarted.posts.map(({ event }) => event.seq))).toEqual(new Set([3, 4]));
  expect(await countOf('webhook_cursor')).toBeGreaterThan(0);
});

test.each(damagedValues)(
  'a line of a list that says %j hides none of the others from who follows them',
  async (value) => {
    const world = webhookRig({
      wrapLedgers: (inner) =>
        storeWith(inner, {
          lines: async (list, page) => {
            const lines = await inner.lines(list, page);
            return list === names.ledgersOf(supplier) ? [{ order: '0', value }, ...lines] : lines;
          },
        }),
    });
    await world.run(openLedger(), createMaster());
    await world.subscribe(supplier, { url: 'https://two.example/' });
    await world.quiet();
    await world.runToEnd(append());
    expect(typesSent(world).length).toBeGreaterThan(0);
    expect(await countOf('line')).toBeGreaterThan(0);
  },
);

test.each(damagedValues)(
  'a line that says %j leaves the other ledgers the seqs that deliveries begin after',
  async (value) => {
    const line = JSON.stringify({ ledgerId, role: 'supplier' });
    const ledgers = storeWith(new MemoryLedgerStore(() => 0), {
      lines: async () => [value, line].map((text, at) => ({ order: `${at}`, value: text })),
    });
    const work = { newestAnswered: () => 4, writtenLately: () => [] };
    const bounded = boundedLedgers(unboundedWalk(), ledgers);
    expect(await seqsToStartAfter(bounded, work, supplier, null)).toEqual({ [ledgerId]: 4 });
    expect(await countOf('line')).toBe(1);
  },
);

test.each(damagedValues)(
  'a record of deliveries that says %j hides no other from lists and from sending',
  async (value) => {
    const rig = deliveriesAt();
    await rig.recordNow(1);
    await rig.ask();
    for (const kind of [blockKind, requestedKind]) {
      const { id = '', lookups = [] } = rig.puts(kind)[0] ?? {};
      await damage(rig.memory, kind, id, value, lookups);
    }
    rig.clock.jump(minuteMs);
    const left = [...(await rig.recordNow(1)), await rig.ask()].toSorted();
    expect((await rig.pending()).map(({ delivery }) => delivery.id).toSorted()).toEqual(left);
    const listed = await rig.deliveries.ofSubscription(unboundedWalk(), subscriptionId, { limit: 10 });
    expect(listed.map(({ id }) => id).toSorted()).toEqual(left);
    for (const kind of [blockKind, requestedKind]) expect(await countOf(kind)).toBeGreaterThan(0);
  },
);

describe('a list of records', () => {
  interface Thing {
    readonly name: string;
  }
  const rules = {
    kind: 'thing',
    form: { name: text },
    id: ({ name }: Thing) => name,
    lookups: ({ name }: Thing) => [{ name: 'all', value: 'all', order: name }],
  };

  test.each([...damagedValues, '{"name":"another"}'])('passes over a record that says %j', async (value) => {
    const records = new MemoryRecordStore();
    const things = collection<Thing>(records, rules);
    const all = Array.from({ length: 60 }, (_, at) => `thing-${String(at).padStart(2, '0')}`);
    for (const name of all) await things.create({ name });
    const damaged = [all[0], all[23], all[24], all[59]].map(String);
    for (const id of damaged) await damage(records, 'thing', id, value, rules.lookups({ name: id }));
    const left = all.filter((name) => !damaged.includes(name));
    const named = async (limit: number) =>
      (await things.find(unboundedWalk(), 'all', 'all', { limit })).map(({ name }) => name);
    expect(await named(100)).toEqual(left);
    expect(await named(30)).toEqual(left.slice(0, 30));
    await expect(things.get(damaged[0] ?? '')).rejects.toMatchObject({ code: 'internal', details: { kind: 'thing' } });
    expect(await countOf('thing')).toBeGreaterThanOrEqual(damaged.length);
  });
});

test('kinds and names that damage makes up fill neither the metrics nor the log', async () => {
  for (let at = 0; at < 3_000; at++) tellUnreadable({ kind: `kind-${at}`, id: `${at}`, error: new Error('damaged') });
  expect((await registry.metrics()).split('\n').length).toBeLessThan(100);
  expect(await countOf('other')).toBe(3_000 - 63);
  expect(logged.length).toBe(1_000);
  tellUnreadable({ kind: 'authority', id: 'keys', error: new Error('damaged') });
  expect(await countOf('authority')).toBe(1);
});

test('the log says what to do, by the kind of the value', () => {
  for (const kind of ['tile', 'signed_head', 'thing', 'authority'])
    tellUnreadable({ kind, id: 'i', error: new TypeError('damaged') });
  const [tile, head, thing, authority] = logged;
  expect(tile).toContain('nothing has to be done');
  expect(head).toContain('never remove it');
  expect(thing).toContain('restore it from a backup, or remove it');
  expect(authority).toContain('`cluster confirm-authority`');
});
