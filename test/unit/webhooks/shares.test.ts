import { describe, expect, test } from 'vitest';
import { append, createMaster, openLedger, supplier, uuid } from '../../support/commands.ts';
import { hookUrl, subscribedOrder, webhookOrder } from '../../support/webhook-order.ts';
import { answer, heldReceiver, silent, type WebhookRig } from '../../support/webhook-rig.ts';

describe('shares', () => {
  /** Makes so many ledgers with a master and an event each. */
  async function manyLedgers(world: WebhookRig, count: number, first = 100): Promise<void> {
    for (let at = 0; at < count; at++) {
      const ids = { ledgerId: uuid(first + at), masterId: uuid(10_000 + first + at) };
      await world.run(openLedger({ ledgerId: ids.ledgerId }), createMaster(ids), append(ids));
    }
  }

  /** Sends a PING, so that the receiver is known as quick. */
  async function prove(world: WebhookRig, id: string): Promise<void> {
    await world.ping(supplier, id);
    await world.quiet();
  }

  test('a target gets 4 attempts at once, however many ledgers wait for it', async () => {
    const { receiver, waiting } = heldReceiver();
    const { world, id } = await subscribedOrder(() => answer(200));
    await prove(world, id);
    world.receivers.set(hookUrl, receiver);
    world.receivers.set('https://hooks.example/b', receiver);
    await world.subscribe(supplier, { url: 'https://hooks.example/b' });
    await manyLedgers(world, 10);
    await world.quiet();
    expect(waiting).toHaveLength(4);
    for (const go of waiting.splice(0)) go();
    await world.quiet();
    expect(waiting).toHaveLength(4);
  });

  test('untried targets that do not answer get 9 attempts at once, and do not delay a quick target', async () => {
    const world = await webhookOrder();
    for (let at = 0; at < 20; at++) {
      world.receivers.set(`https://dead-${at}.example/`, silent);
      await world.subscribe(supplier, { url: `https://dead-${at}.example/` });
    }
    await world.subscribe(supplier, { url: 'https://quick.example/' });
    const other = await world.subscribe(supplier, { url: 'https://quick.example/', eventTypes: ['NEVER'] });
    await prove(world, other.id);
    await manyLedgers(world, 30);
    await world.quiet();
    const dead = world.posts.filter(({ url }) => url.includes('dead'));
    expect(dead).toHaveLength(9);
    const quick = world.posts.filter(({ url, event }) => url.includes('quick') && event.event_type !== 'PING');
    // GENESIS, ORDER_OPENED, master and event of each ledger.
    expect(quick).toHaveLength(120);
  });

  test('quick targets of one owner get 28 attempts at once together', async () => {
    const world = await webhookOrder();
    const { receiver, waiting } = heldReceiver();
    for (let at = 0; at < 20; at++) {
      const target = `https://host-${at}.example/`;
      const { id } = await world.subscribe(supplier, { url: target });
      await prove(world, id);
      world.receivers.set(target, receiver);
    }
    await manyLedgers(world, 5);
    await world.quiet();
    expect(waiting).toHaveLength(28);
  });

  test('memory holds a window of the waiting deliveries', async () => {
    const { world, id } = await subscribedOrder(silent);
    await Promise.all(Array.from({ length: 1_000 }, () => world.run(append())));
    await world.quiet();
    expect(world.webhooks.held).toBeLessThanOrEqual(32);
    expect((await world.deliveries(supplier, id)).count).toBe(1_000);
  });
});
