import { describe, expect, test } from 'vitest';
import { isoTime } from '../../../src/domain/values/time.ts';
import { seededEntropy } from '../../../src/service/calls/entropy.ts';
import { subscriptionsIn } from '../../../src/service/webhooks/subscription-record.ts';
import { buyer, supplier, uuid } from '../../support/commands.ts';
import { type WebhookRig, webhookRig } from '../../support/webhook-rig.ts';

const full = { code: 'overloaded', details: { bound: 'SUBSCRIPTIONS_MAX' } };

/** The subscriptions that the actor gets, one after the other, until one is refused. */
async function subscribeUntilRefused(world: WebhookRig, actorId: string): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    try {
      ids.push((await world.subscribe(actorId)).id);
    } catch (error) {
      expect(error).toMatchObject(full);
      return ids;
    }
  }
}

describe('a node that knows as many subscriptions as SUBSCRIPTIONS_MAX', () => {
  test('makes a new one once another one has ended', async () => {
    const world = webhookRig({ subscriptionsMax: 2 });
    const { id } = await world.subscribe(supplier);
    await world.subscribe(buyer);
    await expect(world.subscribe(uuid(100))).rejects.toMatchObject(full);
    await world.unsubscribe(supplier, id);
    await world.subscribe(uuid(100));
    await expect(world.subscribe(uuid(101))).rejects.toMatchObject(full);
  });

  test('answers a creation that is run again with the subscription of its first run', async () => {
    const world = webhookRig({ subscriptionsMax: 1 });
    const now = world.clock.now();
    const request = {
      $typeName: 'svc.v1.CreateWebhookRequest' as const,
      url: 'https://hooks.example/',
      eventTypes: [],
    };
    const create = () =>
      world.api.createWebhook(request, {
        ...world.call(supplier),
        ...seededEntropy(Buffer.alloc(32, 7), now),
        now,
      });
    const first = await create();
    await expect(world.subscribe(supplier)).rejects.toMatchObject(full);
    expect(await create()).toEqual(first);
  });

  test('tells an actor with a thousand that it has as many as an actor may', async () => {
    const world = webhookRig({ subscriptionsMax: 1 });
    const subscriptions = subscriptionsIn(world.records);
    const target = { url: 'https://hooks.example/', eventTypes: [], ledgerId: null };
    const more = { createdAt: isoTime(world.clock.now()), sealedSecret: '', endedAt: null, endedBy: null };
    for (let at = 0; at < 1_000; at++)
      await subscriptions.create({ id: `made-${at}`, actorId: supplier, ...target, ...more });
    await world.subscribe(buyer);
    await expect(world.subscribe(supplier)).rejects.toMatchObject({
      code: 'invalid_argument',
      details: { limit: 1_000 },
    });
  });

  test('counts the subscriptions that other nodes made', async () => {
    const shared = { tellOthers: () => {} };
    const first = webhookRig({ ...shared, subscriptionsMax: 1 });
    const second = await first.resumed({ ...shared, subscriptionsMax: 1 });
    const { id } = await first.subscribe(supplier);
    await second.webhooks.catchUp();
    await expect(second.subscribe(buyer)).rejects.toMatchObject(full);
    await first.unsubscribe(supplier, id);
    await second.webhooks.catchUp();
    await second.subscribe(buyer);
  });
});

test('from half of SUBSCRIPTIONS_MAX on, an actor has at most a sixteenth of the free places', async () => {
  const world = webhookRig({ subscriptionsMax: 128 });
  expect(await subscribeUntilRefused(world, supplier)).toHaveLength(64);
  const ids = await subscribeUntilRefused(world, buyer);
  expect(ids).toHaveLength(4);
  for (const id of ids) await world.unsubscribe(buyer, id);
  expect(await subscribeUntilRefused(world, buyer)).toHaveLength(4);
});

test('an actor without a subscription gets one as long as a place is free', async () => {
  const world = webhookRig({ subscriptionsMax: 32 });
  expect(await subscribeUntilRefused(world, supplier)).toHaveLength(16);
  for (let at = 0; at < 16; at++) expect(await subscribeUntilRefused(world, uuid(100 + at))).toHaveLength(1);
  expect(await subscribeUntilRefused(world, uuid(116))).toEqual([]);
});

describe('a node that starts', () => {
  /** What a node with the bound knows of three subscriptions, and how often it warns. */
  async function startedWith(subscriptionsMax: number) {
    const first = webhookRig();
    const ids: string[] = [];
    for (let at = 0; at < 3; at++) ids.push((await first.subscribe(supplier)).id);
    const world = await first.resumed({ subscriptionsMax });
    const known = ids.filter((id) => world.webhooks.subscription(id) !== undefined);
    const warnings = world.logged.filter((line) => line.includes('SUBSCRIPTIONS_MAX'));
    return { world, ids, known: known.length, warnings };
  }

  test('knows more subscriptions than SUBSCRIPTIONS_MAX if the store has them, and warns once', async () => {
    const { world, ids, known, warnings } = await startedWith(2);
    expect(known).toBe(3);
    expect(warnings.map((line) => JSON.parse(line))).toEqual([expect.objectContaining({ known: 3, max: 2 })]);
    await expect(world.subscribe(buyer)).rejects.toMatchObject(full);
    for (const id of ids.slice(1)) await world.unsubscribe(supplier, id);
    await world.subscribe(buyer);
  });

  test('does not warn if the store has exactly as many', async () => {
    const { known, warnings } = await startedWith(3);
    expect([known, warnings]).toEqual([3, []]);
  });
});
