import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/runtime/limits/limits.ts';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import {
  append,
  buyer,
  createMaster,
  ledgerId,
  openingFacts,
  openLedger,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { faultyLedgerStore, scriptedFaults } from '../../support/store-faults.ts';
import { minute, second, webhookOrder } from '../../support/webhook-order.ts';
import { typesSent, type WebhookRig, webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls, rig, storeWith } from '../../support/world.ts';

const [wide, named, watching] = ['https://wide.example/', 'https://named.example/', 'https://watching.example/'];
const kinds = [
  { of: 'all ledgers', to: wide, asks: {} },
  { of: 'one ledger', to: named, asks: { ledgerId } },
];

/** An order with one event. After `hold` its appends wait: before the write, or between the write and the answer. */
async function slowOrder(at: 'before' | 'written') {
  const gate = Promise.withResolvers<void>();
  let slow = false;
  const wrap = (memory: LedgerStore) =>
    storeWith(memory, {
      append: async (claim, entries) => {
        if (slow && at === 'before') await gate.promise;
        await memory.append(claim, entries);
        if (slow && at === 'written') await gate.promise;
      },
    });
  const world = webhookRig({ rig: rig({ wrap }) });
  await world.run(openLedger(), createMaster(), append({ eventType: 'BEFORE' }));
  const hold = () => {
    slow = true;
  };
  return { world, hold, release: () => gate.resolve() };
}

describe.each(kinds)('a subscription to $of', ({ to: url, asks }) => {
  test('does not read the many events that were answered just before it', async () => {
    let entriesRead = 0;
    const wrapLedgers = (memory: LedgerStore) =>
      storeWith(memory, {
        read: async (ledger, fromSeq, limit) => {
          const entries = await memory.read(ledger, fromSeq, limit);
          entriesRead += entries.length;
          return entries;
        },
      });
    const world = webhookRig({ wrapLedgers });
    await world.run(openLedger(), createMaster());
    for (let round = 0; round < 10; round++)
      await world.run(...Array.from({ length: 50 }, () => append({ eventType: 'BEFORE' })));
    entriesRead = 0;
    await world.subscribe(supplier, { url, ...asks });
    await world.runToEnd(append({ eventType: 'AFTER' }));
    expect(typesSent(world, url)).toEqual(['AFTER']);
    expect(entriesRead).toBeLessThan(50);
  });

  test.each([0.3, 5, limits.callTimeoutMs / 1_000])(
    'gets an event answered after it and dated %d s before it',
    async (s) => {
      const { world, hold, release } = await slowOrder('before');
      hold();
      const late = world.run(append({ eventType: 'LATE' }));
      await world.clock.advance(s * second);
      await world.subscribe(supplier, { url, ...asks });
      release();
      await late;
      await world.quiet();
      expect(typesSent(world, url)).toEqual(['LATE']);
    },
  );

  test('gets an event that was in the log before it and was answered after it', async () => {
    const { world, hold, release } = await slowOrder('written');
    hold();
    const late = world.run(append({ eventType: 'LATE' }));
    await world.quiet();
    await world.subscribe(buyer, { url: watching });
    await world.quiet();
    await world.clock.advance(3 * second);
    expect(world.posts).toEqual([]);
    await world.subscribe(supplier, { url, ...asks });
    release();
    await late;
    await world.quiet();
    expect([typesSent(world, url), typesSent(world, watching)]).toEqual([['LATE'], ['LATE']]);
  });

  test('gets an event of an earlier write whose outcome became known after it', async () => {
    const faults = scriptedFaults();
    const world = webhookRig({ rig: rig({ wrap: (memory) => faultyLedgerStore(memory, faults.choose) }) });
    await world.run(openLedger(), createMaster(), append({ eventType: 'BEFORE' }));
    faults.fail('append', 'applied');
    faults.fail('claim', ...Array<'lost'>(5).fill('lost'));
    const late = world.run(append({ eventType: 'LATE' }));
    await world.quiet();
    await world.subscribe(buyer, { url: watching });
    await world.quiet();
    await world.subscribe(supplier, { url, ...asks });
    expect(world.posts).toEqual([]);
    await world.clock.advance(3 * second);
    await late;
    await world.quiet();
    expect(typesSent(world, url)).toEqual(['LATE']);
  });

  test.each([0, 0.5, 3, 11, 14])('gets no event that was answered %d s before it', async (s) => {
    const world = await webhookOrder();
    await world.run(append({ eventType: 'BEFORE' }));
    await world.clock.advance(s * second);
    await world.subscribe(supplier, { url, ...asks });
    await world.runToEnd(append({ eventType: 'AFTER' }));
    expect(typesSent(world, url)).toEqual(['AFTER']);
  });

  test('made on a node that has not written the ledger gets its newest commit, and none before', async () => {
    const first = await webhookOrder();
    for (const eventType of ['ONE', 'TWO', 'THREE']) {
      await first.run(append({ eventType }));
      await first.clock.advance(2 * second);
    }
    first.kill();
    const world = first.restarted();
    world.webhooks.start();
    await world.subscribe(supplier, { url, ...asks });
    await world.runToEnd(append({ eventType: 'AFTER' }));
    expect(typesSent(world, url)).toEqual(['THREE', 'AFTER']);
  });
});

test('a write with an unknown outcome delays its ledger only until it has ended', async () => {
  const world = await webhookOrder();
  await world.subscribe(supplier, { url: wide });
  world.webhooks.writing(ledgerId, 3);
  await world.rig.directory().submit(append({ eventType: 'UNTOLD' }));
  await world.subscribe(buyer, { url: watching });
  await world.quiet();
  expect(world.posts).toEqual([]);
  world.webhooks.settled(ledgerId);
  await world.quiet();
  expect(typesSent(world, wide)).toEqual(['UNTOLD']);
});

/** Opens so many ledgers of this owner. */
async function openMany(world: WebhookRig, owner: string, count: number): Promise<void> {
  const facts = openingFacts('ORDER', { buyerActorId: owner, supplierActorId: uuid(0xf0) });
  for (let at = 0; at < count; at++) {
    await world.run(openLedger({ ledgerId: uuid(0x10_000 + at), actorId: owner, facts }));
  }
}

const seqsSeen = async (world: WebhookRig, id: string) =>
  JSON.parse((await world.records.get('webhook_start', id))?.value ?? '{}') as Record<string, number>;

test('of a thousand ledgers that are written to, only the seqs of the owner’s ledgers are stored', async () => {
  const world = await webhookOrder();
  await openMany(world, stranger, 1_000);
  const { id } = await world.subscribe(supplier, { url: wide });
  expect(await seqsSeen(world, id)).toEqual({ [ledgerId]: 2 });
});

test('the answered seqs of an owner’s 500 ledgers are stored for an hour, and are not in memory', async () => {
  const world = await webhookOrder();
  await openMany(world, stranger, 500);
  const { id } = await world.subscribe(stranger, { url: wide });
  expect(Object.keys(await seqsSeen(world, id))).toHaveLength(500);
  expect(JSON.stringify(world.webhooks.subscription(id)).length).toBeLessThan(1_000);
  expect((await world.records.get('webhook_subscription', id))?.value.length).toBeLessThan(1_000);
  await world.records.sweep(world.clock.now() + 59 * minute, 1_000);
  expect(Object.keys(await seqsSeen(world, id))).toHaveLength(500);
  await world.records.sweep(world.clock.now() + 61 * minute, 1_000);
  expect(await seqsSeen(world, id)).toEqual({});
});

test('a node that was started later leaves out the events answered before a subscription too', async () => {
  const first = await webhookOrder();
  await first.run(append({ eventType: 'BEFORE' }));
  await first.subscribe(supplier, { url: wide });
  first.kill();
  await first.rig.directory().submit(append({ eventType: 'AFTER' }));
  const world = await first.resumed();
  expect(typesSent(world, wide)).toEqual(['AFTER']);
});

test('without the stored seqs, events from the second before the subscription are delivered too', async () => {
  const first = await webhookOrder();
  await first.run(append({ eventType: 'LONG BEFORE' }));
  await first.clock.advance(20 * second);
  await first.run(append({ eventType: 'BEFORE' }));
  await first.subscribe(supplier, { url: wide });
  first.kill();
  await first.rig.directory().submit(append({ eventType: 'AFTER' }));
  await first.clock.advance(2 * 60 * minute);
  await first.records.sweep(first.clock.now(), 1_000);
  const world = await first.resumed();
  expect(typesSent(world, wide)).toEqual(['BEFORE', 'AFTER']);
});

test('the answered seqs are looked up only for events from around the creation of a subscription', async () => {
  let lookups = 0;
  const world = await webhookOrder({
    wrapRecords: (inner) =>
      beforeCalls(inner, {
        get: (kind) => {
          if (kind === 'webhook_start') lookups += 1;
        },
      }),
  });
  await world.subscribe(supplier, { url: wide });
  await world.runToEnd(append({ eventType: 'NEXT' }));
  expect(lookups).toBeGreaterThan(0);
  await world.clock.advance(2 * second);
  lookups = 0;
  for (const eventType of ['A', 'B']) await world.run(append({ eventType }));
  await world.quiet();
  expect([typesSent(world, wide), lookups]).toEqual([['NEXT', 'A', 'B'], 0]);
});
