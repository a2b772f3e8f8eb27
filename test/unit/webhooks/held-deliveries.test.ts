import { describe, expect, test, vi } from 'vitest';
import { heldDeliveryBytes, queueBounds } from '../../../src/runtime/limits/queue-bounds.ts';
import { deliveriesIn } from '../../../src/service/webhooks/deliveries.ts';
import { blockKind } from '../../../src/service/webhooks/delivery-block.ts';
import { eventBody } from '../../../src/webhooks/send/delivery-body.ts';
import { windowSlow } from '../../../src/webhooks/send/subscription-queue.ts';
import { append, createMaster, ledgerId, openingFacts, openLedger, supplier, uuid } from '../../support/commands.ts';
import { newDelivery } from '../../support/webhook-deliveries.ts';
import {
  answer,
  heldReceiver,
  type Receiver,
  silent,
  typesSent,
  type WebhookRig,
  webhookRig,
} from '../../support/webhook-rig.ts';
import { beforeCalls } from '../../support/world.ts';

const memoryBytes = 256 * 1024;
const { deliveriesMax: heldMax, deliveryBlocksMaxBytes, eventBodiesMaxBytes } = queueBounds(memoryBytes);
/** Of blocks and bodies, and what rounding adds. */
const keptMaxBytes = deliveryBlocksMaxBytes + eventBodiesMaxBytes + 4_096;

/** An owner's ledger, with events of its own. */
function ledgerOf(world: WebhookRig, number: number, actorId = uuid(1_000 + number)) {
  const ledger = { actorId, ledgerId: uuid(2_000 + number) };
  const ids = { ...ledger, masterId: uuid(3_000 + number) };
  const facts = openingFacts('ORDER', { buyerActorId: actorId, supplierActorId: actorId });
  return {
    ...ledger,
    open: () => world.run(openLedger({ ...ledger, facts }), createMaster(ids)),
    append: (count: number) => Promise.all(Array.from({ length: count }, () => world.run(append(ids)))),
  };
}

/** Answers after this time: by default late enough that the receiver is slow. */
function answering(world: WebhookRig, afterMs = 1_100): Receiver {
  return () => new Promise((resolve) => void world.clock.after(afterMs, () => resolve(answer(200))));
}

/** How many deliveries the memory budget counts. */
function countedIn({ memory }: WebhookRig): () => number {
  const [add, release] = [vi.spyOn(memory, 'add'), vi.spyOn(memory, 'release')];
  const ofDeliveries = ({ mock }: typeof add) => mock.calls.filter(([, bytes]) => bytes === heldDeliveryBytes).length;
  return () => ofDeliveries(add) - ofDeliveries(release);
}

async function deadSubscription(world: WebhookRig, actorId: string, name: string): Promise<string> {
  const url = `https://dead-${name}.example/`;
  world.receivers.set(url, silent);
  return (await world.subscribe(actorId, { url })).id;
}

describe('deliveries in memory', () => {
  test('beyond the bound of all, each of 48 subscriptions with a dead receiver has one', async () => {
    expect(heldMax).toBe(16);
    const world = webhookRig({ memoryBytes });
    const queuedBytes = () => world.memory.heldBytes('queue');
    const counted = countedIn(world);
    await world.run(openLedger(), createMaster());
    const ids: string[] = [];
    for (let at = 0; at < 3 * heldMax; at++) ids.push(await deadSubscription(world, supplier, `${at}`));
    await Promise.all(Array.from({ length: 100 }, () => world.run(append())));
    await world.quiet();
    let most = world.webhooks.held;
    for (let second = 0; second < 120; second++) {
      await world.advance(1_000);
      most = Math.max(most, world.webhooks.held);
      expect(queuedBytes()).toBeGreaterThanOrEqual((world.webhooks.held - ids.length) * heldDeliveryBytes);
      expect(queuedBytes()).toBeLessThanOrEqual(heldMax * heldDeliveryBytes + keptMaxBytes);
    }
    expect(most).toBeGreaterThanOrEqual(3 * heldMax);
    expect(most).toBeLessThanOrEqual(heldMax + ids.length);
    // All get their turn.
    expect(new Set(world.posts.map(({ url }) => url)).size).toBe(ids.length);
    for (const id of ids) await world.unsubscribe(supplier, id);
    await world.advance(20_000);
    expect(world.webhooks.held).toBe(0);
    expect(queuedBytes()).toBeLessThanOrEqual(keptMaxBytes);
    expect(counted()).toBe(0);
  });

  test('an honest owner’s are sent at once though those of 34 owners to dead receivers fill the memory', async () => {
    const world = webhookRig({ memoryBytes });
    const owners = Array.from({ length: 34 }, (_, at) => ledgerOf(world, at));
    for (const [number, owner] of owners.entries()) {
      await owner.open();
      for (let at = 0; at < 4; at++) await deadSubscription(world, owner.actorId, `${number}-${at}`);
      await owner.append(10);
    }
    await world.quiet();
    expect(world.webhooks.held).toBeGreaterThan(heldMax);

    const honest = ledgerOf(world, 100);
    await honest.open();
    const url = 'https://honest.example/';
    world.receivers.set(url, answering(world, 20));
    await world.subscribe(honest.actorId, { url });
    const sentAt = (): number[] => world.posts.filter((post) => post.url === url).map(({ atMs }) => atMs);
    const [burst, singles] = [60, 30];
    const beganMs = world.clock.now();
    await honest.append(burst);
    for (let ms = 0; sentAt().length < burst && ms < 60_000; ms += 5) await world.advance(5);
    const [firstMs = Number.NaN, lastMs = Number.NaN] = [sentAt()[0], sentAt()[burst - 1]];
    // Untried receivers of 35 owners get an attempt in turn, each half a second.
    expect(firstMs - beganMs).toBeLessThanOrEqual(35 * 500);
    expect(lastMs - firstMs).toBeLessThan(burst * 25);
    for (let at = 0; at < singles; at++) {
      await world.advance(1_000);
      await honest.append(1);
      await world.quiet();
      expect(sentAt().at(-1)).toBe(world.clock.now());
    }
    expect(sentAt()).toHaveLength(burst + singles);
    await world.advance(1_000);
    const heldOfOthers = world.webhooks.held;
    expect(heldOfOthers).toBeGreaterThanOrEqual(34 * 4 + 0.75 * heldMax - 1);
    await honest.append(10);
    await world.quiet();
    // A quarter of the bound is for quick receivers.
    expect(world.webhooks.held - heldOfOthers).toBeGreaterThanOrEqual(heldMax / 4);
  });

  test('all are sent to a slow receiver if three quarters of the bound are no whole number', async () => {
    const world = webhookRig({ memoryBytes: 6 * 16 * 1024 });
    expect(queueBounds(world.memory.maxBytes).deliveriesMax).toBe(6);
    const counted = countedIn(world);
    const owners = [0, 1, 2].map((at) => ledgerOf(world, at));
    for (const [number, owner] of owners.entries()) {
      await owner.open();
      const url = `https://receiver-${number}.example/`;
      world.receivers.set(url, number < 2 ? silent : answering(world));
      await world.subscribe(owner.actorId, { url });
      await owner.append(10);
      await world.quiet();
    }
    expect(counted()).toBe(4);
    for (let second = 0; second < 60; second += 1) await world.advance(1_000);
    expect(world.posts.filter(({ url }) => url === 'https://receiver-2.example/')).toHaveLength(10);
  });

  // The last 10 are all, or most, of those of the last ledger.
  test.each([
    [8, 8, windowSlow - 16, 10],
    [8, 8, windowSlow - 18, 12],
  ])(
    'beyond the window of a slow target are given back if it turns slow, and sent in order (%i, %i, %i, %i)',
    async (...counts) => {
      const world = webhookRig({ memoryBytes: 1_024 * 16 * 1024 });
      const counted = countedIn(world);
      const ledgers = [0, 1, 2, 3].map((at) => ledgerOf(world, at, supplier));
      for (const { open } of ledgers) await open();
      const urls = ['a', 'b', 'c'].map((path) => `https://turning.example/${path}`);
      for (const url of urls) await world.subscribe(supplier, { url });
      await Promise.all(ledgers.map((ledger) => ledger.append(1)));
      for (let second = 0; second < 3; second += 1) await world.advance(1_000);
      expect(world.posts).toHaveLength(urls.length * ledgers.length);
      world.posts.length = 0;
      for (const url of urls) world.receivers.set(url, answering(world));
      await Promise.all(ledgers.map((ledger, at) => ledger.append(counts[at] ?? 0)));
      await world.quiet();
      expect(world.webhooks.held).toBe(urls.length * (windowSlow + 10));
      await world.advance(1_100);
      expect(world.webhooks.held).toBeLessThanOrEqual(urls.length * windowSlow);
      expect(counted()).toBe(world.webhooks.held - urls.length);
      for (let second = 0; second < 300; second += 1) await world.advance(1_000);
      for (const url of urls) {
        for (const [at, { ledgerId }] of ledgers.entries()) {
          const seqs = world.posts
            .filter((post) => post.url === url && post.event.ledger_id === ledgerId)
            .map(({ event }) => event.seq ?? -1);
          expect(seqs).toHaveLength(counts[at] ?? 0);
          expect(seqs).toEqual([...new Set(seqs)].sort((one, other) => one - other));
        }
      }
      expect(counted()).toBe(0);
      expect(world.logged).toEqual([]);
    },
  );

  test('of one owner with quick receivers fill a quarter of the bound at most', async () => {
    const world = webhookRig({ memoryBytes: 64 * 16 * 1024 });
    const counted = countedIn(world);
    await world.run(openLedger(), createMaster());
    const url = 'https://quick.example/';
    world.receivers.set(url, answering(world, 900));
    for (let at = 0; at < 8; at += 1) await world.subscribe(supplier, { url });
    await world.runToEnd(append());
    for (let second = 0; second < 8; second += 1) await world.advance(1_000);
    let most = 0;
    await Promise.all(Array.from({ length: 100 }, () => world.run(append())));
    for (let second = 0; second < 20; second += 1) {
      await world.advance(1_000);
      most = Math.max(most, counted());
    }
    expect(most).toBe(64 / 4);
  });

  test.each<[string, Receiver | null]>([
    ['are sent', () => answer(200)],
    ['are refused', () => answer(500)],
    ['find their receiver gone', () => answer(410)],
    ['cannot be recorded', null],
  ])('are not counted any more once they %s', async (_, receiver) => {
    let failing = false;
    const world = webhookRig({
      memoryBytes,
      wrapRecords: (inner) =>
        beforeCalls(inner, {
          put: ({ kind }) => {
            if (failing && kind === blockKind) throw new Error('the store is gone');
          },
        }),
    });
    const counted = countedIn(world);
    await world.run(openLedger(), createMaster());
    const held = heldReceiver();
    world.receivers.set('https://hooks.example/a', held.receiver);
    const { id } = await world.subscribe(supplier);
    await Promise.all(Array.from({ length: 10 }, () => world.run(append())));
    await world.quiet();
    expect(counted()).toBeGreaterThan(2);
    expect(counted()).toBe(world.webhooks.held - 1);
    world.receivers.set('https://hooks.example/a', receiver ?? (() => answer(200)));
    failing = receiver === null;
    for (const answerIt of held.waiting) answerIt();
    for (let second = 0; second < 60; second += 1) {
      await world.advance(1_000);
      expect(counted()).toBe(Math.max(0, world.webhooks.held - 1));
    }
    await world.unsubscribe(supplier, id).catch(() => {});
    await world.advance(20_000);
    expect(world.webhooks.held).toBe(0);
    expect(counted()).toBe(0);
  });

  test('a subscription without room goes on as soon as its last delivery is recorded, over all ledgers', async () => {
    const world = webhookRig({ memoryBytes: 0 });
    const ledgers = Array.from({ length: 4 }, (_, at) => ledgerOf(world, at, supplier));
    for (const { open } of ledgers) await open();
    const url = 'https://quick.example/';
    world.receivers.set(url, answering(world, 20));
    await world.subscribe(supplier, { url });
    await Promise.all(ledgers.map((ledger) => ledger.append(25)));
    await world.quiet();
    const beganMs = world.clock.now();
    while (world.posts.length < 100 && world.clock.now() < beganMs + 60_000) {
      expect(world.webhooks.held).toBeLessThanOrEqual(1);
      await world.advance(20);
    }
    expect(world.clock.now() - beganMs).toBeLessThan(110 * 20);
    expect(world.posts).toHaveLength(100);
  });

  test('a subscription without room looks past those that wait for their ledger’s cursor in few reads', async () => {
    let finds = 0;
    const world = webhookRig({
      memoryBytes: 0,
      wrapRecords: (inner) =>
        beforeCalls(inner, {
          find: (kind, { name }) => {
            if (kind === blockKind && name === 'pending') finds += 1;
          },
        }),
    });
    await world.run(openLedger(), createMaster());
    const { id } = await world.subscribe(supplier);
    await world.quiet();
    // As another node records them before it has moved the cursor.
    const deliveries = Array.from({ length: 64 }, (_, at) => ({
      ...newDelivery(1_000 + at, world.clock.now(), world.clock.now(), ledgerId),
      subscriptionId: id,
    }));
    await deliveriesIn(world.records, world.memory, () => world.clock.now()).record({
      ...{ subscriptionId: id, ledgerId, fromSeq: 1_000, throughSeq: 1_063, deliveries },
    });
    finds = 0;
    await world.lookForDue();
    expect(finds).toBeLessThan(16);
    await world.ping(supplier, id);
    await world.run(append());
    await world.quiet();
    expect(typesSent(world)).toEqual(['SHIPMENT_DISPATCHED', 'PING']);
  });

  test('have bodies that keep no more memory than their bytes', async () => {
    const world = webhookRig();
    await world.run(openLedger(), createMaster());
    const [event = expect.unreachable()] = await world.run(append());
    const body = eventBody(event, event.createdAt);
    expect(body.buffer.byteLength).toBe(body.length);
  });
});
