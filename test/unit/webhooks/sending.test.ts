import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { append, ledgerId, supplier } from '../../support/commands.ts';
import { onlyDelivery, second, subscribedOrder, webhookOrder } from '../../support/webhook-order.ts';
import { answer } from '../../support/webhook-rig.ts';

describe('what is sent', () => {
  test('the body of the specification, signed by both schemes over the bytes that were sent', async () => {
    const { world, secret } = await subscribedOrder(() => answer(200));
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
    const { world } = await subscribedOrder(() => answer(status));
    await world.runToEnd(append());
    status = 200;
    await world.advance(30 * second);
    const [one, two] = world.posts;
    expect(two?.raw).toEqual(one?.raw);
    const times = world.posts.map(({ headers }) => Number(headers['webhook-timestamp']));
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBe(30);
    expect(two?.headers['webhook-signature']).not.toBe(one?.headers['webhook-signature']);
  });

  test('a PING belongs to no ledger, and is sent whatever event types the subscription names', async () => {
    const world = await webhookOrder();
    const { id } = await world.subscribe(supplier, { eventTypes: ['NEVER'] });
    const { delivery } = await world.ping(supplier, id);
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
