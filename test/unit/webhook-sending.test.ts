import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  append,
  buyer,
  createMaster,
  delegate,
  grant,
  ledgerId,
  openLedger,
  revoke,
  supplier,
  uuid,
} from '../support/commands.ts';
import { faultyRecordStore, scriptedFaults } from '../support/store-faults.ts';
import {
  answer,
  broken,
  heldReceiver,
  type Receiver,
  silent,
  type WebhookRig,
  webhookRig,
} from '../support/webhook-rig.ts';
import { storeWith } from '../support/world.ts';

const url = 'https://hooks.example/a';
const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

async function orderWorld(options: Parameters<typeof webhookRig>[0] = {}): Promise<WebhookRig> {
  const world = webhookRig(options);
  await world.run(openLedger(), createMaster());
  return world;
}

/** One subscription of the supplier, with a receiver. */
async function subscribed(
  receiver: Receiver,
): Promise<{ world: WebhookRig; id: string; secret: string; base: number }> {
  const world = await orderWorld();
  world.receivers.set(url, receiver);
  const { id, secret } = await world.subscribe(supplier, { url });
  return { world, id, secret, base: world.clock.now() };
}

const onlyDelivery = async (world: WebhookRig, id: string) => {
  const { deliveries } = await world.deliveries(supplier, id);
  expect(deliveries).toHaveLength(1);
  return deliveries[0];
};

describe('what is sent', () => {
  test('the body of the specification, signed by both schemes over the bytes that were sent', async () => {
    const { world, secret } = await subscribed(() => answer(200));
    const [event] = await world.run(append({ payload: '{"amount":1e-7,"ü":"\\u0007"}' }));
    await world.quiet();
    const [post] = world.posts;
    const body = JSON.parse(post?.raw.toString() ?? '');
    expect(Object.keys(body)).toEqual(['api_version', 'event', 'created_at']);
    expect(body).toEqual({
      api_version: '2026-04-14',
      created_at: event?.createdAt,
      event: {
        id: event?.id,
        ledger_id: ledgerId,
        event_type: 'SHIPMENT_DISPATCHED',
        payload: { amount: 1e-7, ü: '\u0007' },
        actor_id: supplier,
        created_at: event?.createdAt,
        seq: 3,
        master_id: event?.master?.id,
        hash: event?.hash,
      },
    });
    const raw = post?.raw ?? Buffer.alloc(0);
    const own = createHmac('sha256', secret)
      .update(Buffer.concat([Buffer.from('svc-webhook-v1:'), raw]))
      .digest('hex');
    expect(post?.headers['x-svc-signature']).toBe(`sha256=${own}`);
    const timestamp = post?.headers['webhook-timestamp'];
    expect(Number(timestamp)).toBe(Math.floor((post?.atMs ?? 0) / 1_000));
    expect(post?.headers['webhook-id']).toBe(event?.id);
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    expect(key).toHaveLength(32);
    const signed = Buffer.concat([Buffer.from(`${event?.id}.${timestamp}.`), raw]);
    expect(post?.headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
  });

  test('a retry sends the same body with the time of the attempt', async () => {
    let status = 500;
    const { world } = await subscribed(() => answer(status));
    await world.run(append());
    await world.quiet();
    status = 200;
    await world.clock.advance(30 * second);
    await world.quiet();
    const [one, two] = world.posts;
    expect(two?.raw).toEqual(one?.raw);
    const times = world.posts.map(({ headers }) => Number(headers['webhook-timestamp']));
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBe(30);
    expect(two?.headers['webhook-signature']).not.toBe(one?.headers['webhook-signature']);
  });

  test('a PING stands in no ledger, whatever types are asked for', async () => {
    const world = await orderWorld();
    const { id } = await world.subscribe(supplier, { eventTypes: ['NEVER'] });
    const { delivery } = await world.api.testWebhook(
      { $typeName: 'svc.v1.TestWebhookRequest', id },
      world.call(supplier),
    );
    expect(delivery).toMatchObject({ eventType: 'PING', ledgerId: undefined, attempt: 0 });
    await world.quiet();
    const body = JSON.parse(world.posts[0]?.raw.toString() ?? '');
    expect(body.event).toEqual({
      id: delivery.eventId,
      ledger_id: null,
      event_type: 'PING',
      payload: { subscription_id: id },
      actor_id: null,
      created_at: expect.any(String),
      seq: null,
      master_id: null,
      hash: null,
    });
    expect((await onlyDelivery(world, id))?.status).toBe('DELIVERED');
  });
});

describe('the schedule', () => {
  test('now, 30 s, 5 min, 30 min, 2 h, then FAILED; attempt counts the retries', async () => {
    const { world, id, base } = await subscribed(() => answer(503));
    await world.run(append());
    const seen: unknown[] = [];
    for (const wait of [0, 30 * second, 5 * minute, 30 * minute, 2 * hour]) {
      await world.clock.advance(wait);
      await world.quiet();
      const { status, attempt, nextAttemptAt, lastError } = (await onlyDelivery(world, id)) ?? {};
      const next = nextAttemptAt === undefined ? null : Date.parse(nextAttemptAt) - world.clock.now();
      seen.push([status, attempt, next, lastError]);
    }
    expect(seen).toEqual([
      ['PENDING', 0, 30 * second, 'The receiver answered 503.'],
      ['PENDING', 1, 5 * minute, 'The receiver answered 503.'],
      ['PENDING', 2, 30 * minute, 'The receiver answered 503.'],
      ['PENDING', 3, 2 * hour, 'The receiver answered 503.'],
      ['FAILED', 4, null, 'The receiver answered 503.'],
    ]);
    expect(world.posts.map(({ atMs }) => atMs - base)).toEqual([
      0,
      30 * second,
      30 * second + 5 * minute,
      35 * minute + 30 * second,
      2 * hour + 35 * minute + 30 * second,
    ]);
    await world.clock.advance(24 * hour);
    await world.quiet();
    expect(world.posts).toHaveLength(5);
  });

  test('a millisecond before its time a retry is not sent', async () => {
    const { world } = await subscribed(() => answer(500));
    await world.run(append());
    await world.quiet();
    await world.clock.advance(30 * second - 1);
    await world.quiet();
    expect(world.posts).toHaveLength(1);
    await world.clock.advance(1);
    await world.quiet();
    expect(world.posts).toHaveLength(2);
  });

  test('it goes on after a restart, overdue attempts at once', async () => {
    const { world, id } = await subscribed(() => answer(500));
    await world.run(append());
    await world.quiet();
    world.kill();
    await world.clock.advance(hour);
    const next = world.restarted();
    next.receivers.set(url, () => answer(500));
    next.webhooks.start();
    await next.quiet();
    expect(next.posts).toHaveLength(1);
    expect(await onlyDelivery(next, id)).toMatchObject({ status: 'PENDING', attempt: 1 });
    await next.clock.advance(5 * minute);
    await next.quiet();
    expect(next.posts).toHaveLength(2);
  });

  test.each([
    ['a redirect', () => answer(302), 302, 'The receiver answered 302; redirects are not followed.'],
    ['not modified', () => answer(304), 304, 'The receiver answered 304; redirects are not followed.'],
    ['a 4xx', () => answer(404), 404, 'The receiver answered 404.'],
    ['a broken connection', () => broken, undefined, 'The connection broke off before the receiver had answered.'],
  ] satisfies [string, Receiver, number | undefined, string][])('%s fails', async (_name, receiver, status, error) => {
    const { world, id } = await subscribed(receiver);
    await world.run(append());
    await world.quiet();
    expect(await onlyDelivery(world, id)).toMatchObject({ status: 'PENDING', lastError: error });
    expect((await onlyDelivery(world, id))?.lastResponseStatus).toBe(status);
  });

  test.each([200, 201, 204, 299])('%i is success', async (status) => {
    const { world, id } = await subscribed(() => answer(status));
    await world.run(append());
    await world.quiet();
    expect(await onlyDelivery(world, id)).toMatchObject({ status: 'DELIVERED', lastResponseStatus: status });
  });

  test('no answer within 10 s is a failed attempt', async () => {
    const { world, id } = await subscribed(silent);
    await world.run(append());
    await world.quiet();
    await world.clock.advance(10 * second - 1);
    expect((await onlyDelivery(world, id))?.lastError).toBeUndefined();
    await world.clock.advance(1);
    await world.quiet();
    expect(await onlyDelivery(world, id)).toMatchObject({
      status: 'PENDING',
      lastError: 'The receiver did not answer within 10 seconds.',
    });
  });
});

describe('order', () => {
  test('one of a ledger is under way at a time, two ledgers go side by side', async () => {
    const { receiver, waiting } = heldReceiver();
    const { world } = await subscribed(receiver);
    await world.run(openLedger({ ledgerId: uuid(2) }), createMaster({ ledgerId: uuid(2), masterId: uuid(3) }));
    await world.quiet();
    for (let step = 0; step < 3; step++) {
      for (const go of waiting.splice(0)) go();
      await world.quiet();
    }
    expect(waiting).toHaveLength(0);
    const before = world.posts.length;
    await world.run(append(), append(), append({ ledgerId: uuid(2), masterId: uuid(3) }));
    await world.quiet();
    expect(world.posts.slice(before).map(({ event }) => event.ledger_id)).toEqual([ledgerId, uuid(2)]);
    for (const go of waiting.splice(0)) go();
    await world.quiet();
    expect(world.posts.slice(before).map(({ event }) => event.seq)).toEqual([3, 3, 4]);
  });

  test('a retrying one is overtaken, and the others keep their order', async () => {
    let failing = true;
    const { world } = await subscribed(({ event }) => answer(event.seq === 4 && failing ? 500 : 200));
    await world.run(append(), append(), append());
    await world.quiet();
    expect(world.posts.map(({ event }) => event.seq)).toEqual([3, 4, 5]);
    failing = false;
    await world.clock.advance(30 * second);
    await world.run(append());
    await world.quiet();
    expect(world.posts.map(({ event }) => event.seq).sort()).toEqual([3, 4, 4, 5, 6]);
  });

  test('an event is not sent before its ledger’s cursor has passed it, so that none before it can follow', async () => {
    const hold = Promise.withResolvers<void>();
    const world = await orderWorld({
      wrapRecords: (inner) => ({
        get: (kind, id) => inner.get(kind, id),
        find: (kind, lookup, page) => inner.find(kind, lookup, page),
        remove: (kind, id, version) => inner.remove(kind, id, version),
        sweep: (now, limit) => inner.sweep(now, limit),
        put: async (write) => {
          const put = await inner.put(write);
          if (write.kind === 'webhook_deliveries') await hold.promise;
          return put;
        },
      }),
    });
    const { id } = await world.subscribe(supplier, { url });
    await Promise.all([world.run(append()), world.run(append())]);
    await world.quiet();
    // Whatever makes the sender look: the deliveries are recorded, and the cursor stands before them.
    await world.api.testWebhook({ $typeName: 'svc.v1.TestWebhookRequest', id }, world.call(supplier));
    await world.quiet();
    expect(world.posts.map(({ event }) => event.event_type)).toEqual(['PING']);
    hold.resolve();
    await world.quiet();
    expect(world.posts.map(({ event }) => event.seq)).toEqual([null, 3, 4]);
  });
});

test('a clock that was set back an hour holds nothing up', async () => {
  const { world } = await subscribed(() => answer(200));
  await world.run(append());
  world.clock.jump(-hour);
  await world.run(append(), append());
  await world.quiet();
  expect(world.posts.map(({ event }) => event.seq)).toEqual([3, 4, 5]);
});

describe('shards', () => {
  test('a node follows and sends for what is its own, takes over what it is given, and gives up what it is not', async () => {
    let own = new Set<string>();
    const world = await orderWorld({ mine: (id) => own.has(id) });
    const { id } = await world.subscribe(supplier, { url });
    await world.run(append());
    await world.quiet();
    expect([world.posts.length, (await world.deliveries(supplier, id)).count]).toEqual([0, 0]);

    const takeOver = (one: string, all: string[]) =>
      world.webhooks.takeOver(
        (id) => id === one,
        () => {
          own = new Set(all);
        },
      );
    await takeOver(ledgerId, [ledgerId]);
    await world.quiet();
    expect([world.posts.length, (await world.deliveries(supplier, id)).count]).toEqual([0, 1]);

    await takeOver(id, [ledgerId, id]);
    await world.quiet();
    expect(world.posts.map(({ event }) => event.seq)).toEqual([3]);

    own = new Set();
    world.webhooks.giveUp(() => true);
    await world.run(append());
    await world.quiet();
    expect([world.posts.length, (await world.deliveries(supplier, id)).count]).toEqual([1, 1]);
  });

  test('two nodes that both believe to own a ledger record each delivery once', async () => {
    const world = await orderWorld();
    const other = world.restarted();
    other.webhooks.start();
    const { id } = await world.subscribe(supplier, { url });
    other.webhooks.subscribed(world.webhooks.subscription(id) ?? expect.fail('it is not there'));
    for (let round = 0; round < 20; round++) {
      await Promise.all([world.run(append()), world.run(append())]);
      other.webhooks.committed(ledgerId, []);
    }
    await world.quiet();
    await other.quiet();
    const { deliveries } = await world.deliveries(supplier, id);
    expect(deliveries.map(({ status }) => status)).toEqual(Array(40).fill('DELIVERED'));
    const arrived = [...world.posts, ...other.posts].map(({ event }) => event.seq);
    expect(new Set(arrived)).toEqual(new Set(Array.from({ length: 40 }, (_, at) => at + 3)));
  });
});

describe('shares', () => {
  /** Ledgers with a master each, and so many events at once. */
  async function manyLedgers(world: WebhookRig, count: number, first = 100): Promise<void> {
    for (let at = 0; at < count; at++) {
      const ids = { ledgerId: uuid(first + at), masterId: uuid(10_000 + first + at) };
      await world.run(openLedger({ ledgerId: ids.ledgerId }), createMaster(ids), append(ids));
    }
  }

  test('a target has 4 at a time, however many ledgers wait for it', async () => {
    const { receiver, waiting } = heldReceiver();
    const { world } = await subscribed(receiver);
    world.receivers.set('https://hooks.example/b', receiver);
    await world.subscribe(supplier, { url: 'https://hooks.example/b' });
    await manyLedgers(world, 10);
    await world.quiet();
    expect(waiting).toHaveLength(4);
    for (const go of waiting.splice(0)) go();
    await world.quiet();
    expect(waiting).toHaveLength(4);
  });

  test('targets that do not answer have 32 in all, and one that answers quickly is not held up', async () => {
    const world = await orderWorld();
    for (let at = 0; at < 20; at++) {
      world.receivers.set(`https://dead-${at}.example/`, silent);
      await world.subscribe(supplier, { url: `https://dead-${at}.example/` });
    }
    await world.subscribe(supplier, { url: 'https://quick.example/' });
    await world.api.testWebhook(
      {
        $typeName: 'svc.v1.TestWebhookRequest',
        id: (await world.subscribe(supplier, { url: 'https://quick.example/', eventTypes: ['NEVER'] })).id,
      },
      world.call(supplier),
    );
    await world.quiet();
    await manyLedgers(world, 30);
    await world.quiet();
    const dead = world.posts.filter(({ url }) => url.includes('dead'));
    expect(dead).toHaveLength(32);
    const quick = world.posts.filter(({ url, event }) => url.includes('quick') && event.event_type !== 'PING');
    // GENESIS, ORDER_OPENED, master and event of each ledger.
    expect(quick).toHaveLength(120);
  });

  test('all together have 64', async () => {
    const world = await orderWorld();
    const { receiver, waiting } = heldReceiver();
    for (let at = 0; at < 20; at++) {
      const target = `https://host-${at}.example/`;
      const { id } = await world.subscribe(supplier, { url: target });
      // Each has answered quickly once.
      await world.api.testWebhook({ $typeName: 'svc.v1.TestWebhookRequest', id }, world.call(supplier));
      await world.quiet();
      world.receivers.set(target, receiver);
    }
    await manyLedgers(world, 5);
    await world.quiet();
    expect(waiting).toHaveLength(64);
  });

  test('memory holds a window of what waits', async () => {
    const { world, id } = await subscribed(silent);
    await Promise.all(Array.from({ length: 1_000 }, () => world.run(append())));
    await world.quiet();
    expect(world.webhooks.held).toBeLessThanOrEqual(32);
    expect((await world.deliveries(supplier, id)).count).toBe(1_000);
  });
});

describe('ends', () => {
  test('410 ends the subscription, and nothing more is sent', async () => {
    const { world, id } = await subscribed(() => answer(410));
    await world.run(append(), append());
    await world.quiet();
    expect(world.posts).toHaveLength(1);
    await world.run(append());
    await world.clock.advance(3 * hour);
    await world.quiet();
    expect(world.posts).toHaveLength(1);
    const listed = await world.api.listWebhooks({ $typeName: 'svc.v1.ListWebhooksRequest' }, world.call(supplier));
    expect(listed.subscriptions).toMatchObject([{ id, active: false }]);
    const { deliveries } = await world.deliveries(supplier, id);
    expect(deliveries.map(({ status, lastResponseStatus }) => [status, lastResponseStatus])).toEqual([
      ['FAILED', 410],
      ['FAILED', undefined],
    ]);
  });

  test('a deleted subscription sends nothing more, not after a restart either, and its PENDING deliveries read as FAILED', async () => {
    const { world, id } = await subscribed(() => answer(500));
    await world.run(append());
    await world.quiet();
    await world.api.deleteWebhook({ $typeName: 'svc.v1.DeleteWebhookRequest', id }, world.call(supplier));
    await world.run(append());
    world.kill();
    const next = world.restarted();
    next.webhooks.start();
    await next.clock.advance(3 * hour);
    await next.quiet();
    expect([world.posts.length, next.posts.length]).toEqual([1, 0]);
    expect(await onlyDelivery(next, id)).toMatchObject({
      status: 'FAILED',
      nextAttemptAt: undefined,
      lastError: 'The subscription has ended.',
    });
  });

  test('stopping waits for what is under way, records it, and begins nothing more', async () => {
    const { receiver, waiting } = heldReceiver();
    const { world, id } = await subscribed(receiver);
    await world.run(append(), append());
    await world.quiet();
    let stopped = false;
    const stopping = world.webhooks[Symbol.asyncDispose]().then(() => {
      stopped = true;
    });
    await world.quiet();
    expect(stopped).toBe(false);
    for (const go of waiting) go();
    await stopping;
    expect(world.posts).toHaveLength(1);
    const { deliveries } = await world.deliveries(supplier, id);
    expect(deliveries.map(({ status }) => status)).toEqual(['DELIVERED', 'PENDING']);
  });
});

describe('redelivery', () => {
  const redeliver = (world: WebhookRig, id: string, deliveryId: string, actorId = supplier) =>
    world.api.redeliverWebhook({ $typeName: 'svc.v1.RedeliverWebhookRequest', id, deliveryId }, world.call(actorId));

  test('sends the event again as a delivery of its own', async () => {
    const { world, id } = await subscribed(() => answer(200));
    await world.run(append());
    await world.quiet();
    const first = await onlyDelivery(world, id);
    const { delivery } = await redeliver(world, id, first?.id ?? '');
    expect(delivery).toMatchObject({ eventId: first?.eventId, attempt: 0, eventType: 'SHIPMENT_DISPATCHED' });
    expect(delivery.id).not.toBe(first?.id);
    await world.quiet();
    expect(world.posts.map(({ event }) => event.id)).toEqual([first?.eventId, first?.eventId]);
    const { deliveries } = await world.deliveries(supplier, id);
    expect(deliveries.map(({ status }) => status)).toEqual(['DELIVERED', 'DELIVERED']);
  });

  test('asks again whether the owner may read the event', async () => {
    const world = await orderWorld();
    await world.run(grant({ access: 'read' }));
    const { id } = await world.subscribe(delegate);
    await world.run(append());
    await world.quiet();
    await world.run(revoke());
    const [first] = (await world.deliveries(delegate, id)).deliveries;
    await redeliver(world, id, first?.id ?? '', delegate);
    await world.quiet();
    expect(world.posts).toHaveLength(1);
    const { deliveries } = await world.deliveries(delegate, id);
    expect(deliveries.map(({ status }) => status).sort()).toEqual(['DELIVERED', 'FAILED']);
  });

  test('is for deliveries of one’s own subscription', async () => {
    const world = await orderWorld();
    const { id } = await world.subscribe(supplier);
    await world.run(append());
    await world.quiet();
    const [first] = (await world.deliveries(supplier, id)).deliveries;
    await expect(redeliver(world, id, first?.id ?? '', buyer)).rejects.toMatchObject({ code: 'not_found' });
    await expect(redeliver(world, id, uuid(1))).rejects.toMatchObject({ code: 'not_found' });
    const other = await world.subscribe(supplier);
    await expect(redeliver(world, other.id, first?.id ?? '')).rejects.toMatchObject({ code: 'not_found' });
    expect(world.posts).toHaveLength(1);
  });
});

test('what is recorded while a window is being read is not sent again from what was read', async () => {
  let gate: Promise<void> | null = null;
  const world = await orderWorld({
    wrapRecords: (inner) => ({
      get: (kind, id) => inner.get(kind, id),
      find: async (kind, lookup, page) => {
        const found = await inner.find(kind, lookup, page);
        if (lookup.name === 'pending') await gate;
        return found;
      },
      remove: (kind, id, version) => inner.remove(kind, id, version),
      sweep: (now, limit) => inner.sweep(now, limit),
      put: (write) => inner.put(write),
    }),
  });
  const { receiver, waiting } = heldReceiver();
  world.receivers.set(url, receiver);
  await world.subscribe(supplier, { url });
  await world.run(append());
  await world.quiet();
  const read = Promise.withResolvers<void>();
  gate = read.promise;
  // Its recording wakes the sender, which reads the first one as PENDING too.
  await world.run(append());
  await world.quiet();
  for (const go of waiting.splice(0)) go();
  await world.quiet();
  gate = null;
  read.resolve();
  await world.quiet();
  for (const go of waiting.splice(0)) go();
  await world.quiet();
  expect(world.posts.map(({ event }) => event.seq)).toEqual([3, 4]);
});

describe('faults', () => {
  test('a delivery whose record cannot be written comes again, and one that reads cannot answer waits', async () => {
    const faults = scriptedFaults();
    const world = await orderWorld({ wrapRecords: (inner) => faultyRecordStore(inner, faults.choose) });
    const { id } = await world.subscribe(supplier, { url });
    world.receivers.set(url, () => {
      faults.fail('record-write', ...Array<'unavailable'>(5).fill('unavailable'));
      world.receivers.delete(url);
      return answer(200);
    });
    await world.run(append());
    await world.quiet();
    for (let at = 0; at < 10; at++) {
      await world.clock.advance(second);
      await world.quiet();
    }
    expect(world.posts).toHaveLength(2);
    expect(await onlyDelivery(world, id)).toMatchObject({ status: 'DELIVERED', attempt: 0 });
  });

  test('an event that cannot be read now is no attempt', async () => {
    let down = false;
    const world = await orderWorld({
      wrapLedgers: (inner) =>
        storeWith(inner, {
          read: async (ledger, from, limit) => {
            if (down && limit === 1 && from === 4) throw new Error('the disk is slow');
            return inner.read(ledger, from, limit);
          },
        }),
    });
    const { id } = await world.subscribe(supplier, { url });
    await world.run(append());
    await world.quiet();
    down = true;
    await world.run(append());
    await world.quiet();
    await world.clock.advance(5 * second);
    await world.quiet();
    const before = (await world.deliveries(supplier, id)).deliveries;
    expect(before[1]).toMatchObject({ status: 'PENDING', attempt: 0, lastError: undefined });
    down = false;
    await world.clock.advance(second);
    await world.quiet();
    const after = (await world.deliveries(supplier, id)).deliveries;
    expect(after[1]).toMatchObject({ status: 'DELIVERED', attempt: 0 });
  });
});
