import { describe, expect, test } from 'vitest';
import { isoTime } from '../../../src/domain/values/time.ts';
import {
  append,
  buyer,
  createMaster,
  delegate,
  grant,
  ledgerId,
  openLedger,
  revoke,
  siblingId,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { webhookOrder } from '../../support/webhook-order.ts';
import { heldReceiver, typesSent, type WebhookRig, webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls } from '../../support/world.ts';

describe('which events a subscription gets', () => {
  test('those answered after the subscription and none from before, within one millisecond too', async () => {
    const world = await webhookOrder();
    await world.subscribe(supplier);
    await world.runToEnd(append({ eventType: 'AFTER' }));
    expect(typesSent(world)).toEqual(['AFTER']);
  });

  test('no events from long before it that are fanned out now for other subscriptions', async () => {
    const world = await webhookOrder();
    await world.subscribe(supplier, { url: 'https://one.example/' });
    await world.quiet();
    world.kill();
    const unseen = world.rig.directory();
    await unseen.submit(append({ eventType: 'OLD' }));
    await world.clock.advance(60_000);
    const next = world.restarted();
    await next.subscribe(supplier, { url: 'https://two.example/' });
    next.webhooks.start();
    await next.runToEnd(append({ eventType: 'NEW' }));
    const got = (host: string) =>
      next.posts.filter(({ url }) => url.includes(host)).map((post) => post.event.event_type);
    expect([got('one'), got('two')]).toEqual([['OLD', 'NEW'], ['NEW']]);
  });

  test('only the types it names', async () => {
    const world = await webhookOrder();
    await world.subscribe(supplier, { eventTypes: ['B'] });
    await world.runToEnd(append({ eventType: 'A' }), append({ eventType: 'B' }));
    expect(typesSent(world)).toEqual(['B']);
  });

  test('only of the ledger it names', async () => {
    const world = await webhookOrder();
    await world.run(openLedger({ ledgerId: uuid(2) }), createMaster({ ledgerId: uuid(2), masterId: uuid(3) }));
    await world.subscribe(supplier, { ledgerId: uuid(2) });
    await world.runToEnd(append(), append({ ledgerId: uuid(2), masterId: uuid(3), eventType: 'OTHER' }));
    expect(typesSent(world)).toEqual(['OTHER']);
  });

  test('of ledgers that were opened later', async () => {
    const world = webhookRig();
    await world.subscribe(supplier);
    await world.runToEnd(openLedger());
    expect(typesSent(world)).toEqual(['GENESIS', 'ORDER_OPENED']);
  });

  test('no events, and no records, of a ledger that its owner may not read', async () => {
    const world = await webhookOrder();
    const { id } = await world.subscribe(stranger);
    await world.runToEnd(append());
    expect(world.posts).toEqual([]);
    expect((await world.deliveries(stranger, id)).deliveries).toEqual([]);
  });

  test('a delegate of one master gets no event of its sibling, and no record of one', async () => {
    const world = await webhookOrder();
    await world.run(createMaster({ masterId: siblingId }), grant({ access: 'read' }));
    const { id } = await world.subscribe(delegate);
    await world.runToEnd(append({ masterId: siblingId, eventType: 'SIBLING' }), append({ eventType: 'OWN' }));
    expect(typesSent(world)).toEqual(['OWN']);
    expect((await world.deliveries(delegate, id)).deliveries.map(({ eventType }) => eventType)).toEqual(['OWN']);
  });

  test('nothing after its owner’s grant was revoked', async () => {
    const world = await webhookOrder();
    await world.run(grant({ access: 'read' }));
    await world.subscribe(delegate);
    await world.runToEnd(append({ eventType: 'BEFORE' }));
    await world.runToEnd(revoke(), append({ eventType: 'AFTER' }));
    expect(typesSent(world)).toEqual(['BEFORE']);
  });

  test.each<[string, (nowMs: number) => ReturnType<typeof grant>, (world: WebhookRig) => Promise<unknown>]>([
    ['is revoked', () => grant({ access: 'read' }), (world) => world.run(revoke())],
    [
      'runs out',
      (nowMs) => grant({ access: 'read', expiresAt: isoTime(nowMs + 5_000) }),
      (world) => world.clock.advance(6_000),
    ],
  ])('deliveries that wait when the grant %s become FAILED, and are not sent', async (_, granted, end) => {
    const world = await webhookOrder();
    await world.run(granted(world.clock.now()));
    const { receiver, waiting } = heldReceiver();
    world.receivers.set('https://hooks.example/a', receiver);
    const { id } = await world.subscribe(delegate);
    await world.runToEnd(append({ eventType: 'FIRST' }), append({ eventType: 'SECOND' }));
    await end(world);
    for (const go of waiting) go();
    await world.quiet();
    expect(typesSent(world)).toEqual(['FIRST']);
    const { deliveries } = await world.deliveries(delegate, id);
    expect(deliveries.map(({ status, attempt, lastError }) => [status, attempt, lastError ?? null])).toEqual([
      ['DELIVERED', 0, null],
      ['FAILED', 0, 'The owner of the subscription may not read this event any more.'],
    ]);
  });

  test('a thousand events reach two subscriptions in the order of the ledger, each once', async () => {
    const world = await webhookOrder();
    await world.subscribe(supplier, { url: 'https://one.example/' });
    await world.subscribe(buyer, { url: 'https://two.example/' });
    await Promise.all(Array.from({ length: 1_000 }, () => world.run(append())));
    await world.quiet();
    for (const host of ['one', 'two']) {
      const seqs = world.posts.filter(({ url }) => url.includes(host)).map(({ event }) => event.seq);
      expect(seqs).toEqual(Array.from({ length: 1_000 }, (_, at) => at + 3));
    }
  });
});

describe('while subscriptions and their ledgers are being read', () => {
  test('a subscription whose owner’s ledgers are still being listed misses no event', async () => {
    const listed = Promise.withResolvers<void>();
    const world = webhookRig({
      wrapLedgers: (inner) =>
        beforeCalls(inner, {
          lines: () => listed.promise,
        }),
    });
    await world.run(openLedger(), createMaster());
    await world.subscribe(buyer, { ledgerId, url: 'https://one.example/' });
    await world.subscribe(supplier, { url: 'https://two.example/' });
    await world.subscribe(stranger, { url: 'https://stranger.example/' });
    await world.runToEnd(append({ eventType: 'MEANWHILE' }));
    listed.resolve();
    await world.runToEnd(append({ eventType: 'AFTERWARDS' }));
    const got = (host: string) =>
      world.posts.filter(({ url }) => url.includes(host)).map(({ event }) => event.event_type);
    expect(got('one')).toEqual(['MEANWHILE', 'AFTERWARDS']);
    expect(got('two')).toEqual(['MEANWHILE', 'AFTERWARDS']);
    expect(got('stranger')).toEqual([]);
  });

  test('events that are appended while a starting node reads its subscriptions reach all of them', async () => {
    const first = await webhookOrder();
    await first.subscribe(buyer, { url: 'https://one.example/' });
    await first.subscribe(supplier, { ledgerId, url: 'https://two.example/' });
    first.kill();
    first.clock.jump(60_000);
    const found = Promise.withResolvers<void>();
    const world = webhookRig({
      rig: first.rig,
      records: first.records,
      secretsKey: first.secretsKey,
      wrapRecords: (inner) =>
        beforeCalls(inner, {
          find: async (_kind, lookup) => {
            if (lookup.name === 'in_force') await found.promise;
          },
        }),
    });
    await world.subscribe(supplier, { ledgerId, url: 'https://three.example/' });
    await world.runToEnd(append());
    found.resolve();
    await world.quiet();
    expect(world.posts.map(({ url }) => new URL(url).hostname).sort()).toEqual([
      'one.example',
      'three.example',
      'two.example',
    ]);
  });
});
