import { describe, expect, test } from 'vitest';
import { heldDeliveryBytes, queueBounds } from '../../../src/runtime/limits/queue-bounds.ts';
import { deliveriesIn } from '../../../src/service/webhooks/deliveries.ts';
import { blockKind } from '../../../src/service/webhooks/delivery-block.ts';
import { eventBody } from '../../../src/webhooks/send/delivery-body.ts';
import { append, createMaster, ledgerId, openingFacts, openLedger, supplier, uuid } from '../../support/commands.ts';
import { newDelivery } from '../../support/webhook-deliveries.ts';
import { answer, silent, typesSent, type WebhookRig, webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls } from '../../support/world.ts';

const memoryBytes = 256 * 1024;
const { deliveriesMax: heldMax, deliveryBlocksMaxBytes, eventBodiesMaxBytes } = queueBounds(memoryBytes);
/** Of blocks and bodies, and what rounding adds. */
const keptMaxBytes = deliveryBlocksMaxBytes + eventBodiesMaxBytes + 4_096;

/** An owner's ledger, with events of its own. */
function ledgerOf(world: WebhookRig, number: number) {
  const actorId = uuid(1_000 + number);
  const ledger = { actorId, ledgerId: uuid(2_000 + number) };
  const ids = { ...ledger, masterId: uuid(3_000 + number) };
  const facts = openingFacts('ORDER', { buyerActorId: actorId, supplierActorId: actorId });
  return {
    actorId,
    open: () => world.run(openLedger({ ...ledger, facts }), createMaster(ids)),
    append: (count: number) => Promise.all(Array.from({ length: count }, () => world.run(append(ids)))),
  };
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
    world.receivers.set(url, () => new Promise((resolve) => void world.clock.after(20, () => resolve(answer(200)))));
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
    await deliveriesIn(world.records, () => world.clock.now()).record({
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
