import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { verifyWebhook } from '../../src/client/webhook.ts';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { append, newMaster, newParty, type Party, signedBy } from '../support/parties.ts';
import { done, expectRefused, type Fields, rest, shape } from '../support/parties-rest.ts';
import { runNode } from '../support/running-node.ts';
import { oneNodeTest } from '../support/several-nodes.ts';
import { eventually, receiveWebhooks, type WebhookReceiver } from '../support/webhook-receiver.ts';

const { node, base, order } = await nodeWithOrder();

let receiver: WebhookReceiver;

beforeEach(async () => {
  receiver = await receiveWebhooks();
});
afterEach(() => receiver[Symbol.asyncDispose]());

const subscribe = (by: Party, body: Fields = {}) =>
  rest(base, 'POST', '/v1/webhooks', by, { url: receiver.url, ...body });

const deliveriesOf = async (by: Party, id: string, query = '') =>
  (await done(base, 'GET', `/v1/webhooks/${id}/deliveries${query}`, by)).rows('deliveries');

const act = (by: Party, path: string, headers: Record<string, string> = {}) =>
  rest(base, 'POST', path, { headers: { ...by.bearer, ...headers } });

describe('a subscription', () => {
  test('is created and listed, and shows its secret once', async () => {
    const by = await newParty(base);
    const made = await subscribe(by, { event_types: ['A', 'B', 'A'] });
    expect(made.body).toEqual({
      id: shape.uuid,
      url: receiver.url,
      event_types: ['A', 'B'],
      ledger_id: null,
      active: true,
      created_at: shape.time,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      note: expect.any(String),
    });
    const listed = await done(base, 'GET', '/v1/webhooks', by);
    const { secret, note, ...shown } = made.body;
    expect(listed.body).toEqual({ count: 1, subscriptions: [shown] });
    expect(note).not.toBe('');
    expect(node.lines.join()).not.toContain(String(secret));
    const removed = await rest(base, 'DELETE', `/v1/webhooks/${made.text('id')}`, by);
    expect([removed.status, removed.raw]).toEqual([204, '']);
    const after = await done(base, 'GET', '/v1/webhooks', by);
    expect(after.body).toEqual({ count: 1, subscriptions: [{ ...shown, active: false }] });
  });

  test('is the same with the same secret when it is sent again with its key', async () => {
    const by = await newParty(base);
    const headers = { ...by.bearer, 'idempotency-key': randomUUID() };
    const twice = [];
    for (let at = 0; at < 2; at++) {
      twice.push(await rest(base, 'POST', '/v1/webhooks', { headers, body: { url: receiver.url } }));
    }
    expect(twice[1]?.body).toEqual(twice[0]?.body);
    const listed = await done(base, 'GET', '/v1/webhooks', by);
    expect(listed.body.count).toBe(1);
  });

  oneNodeTest('is refused for a port of the service itself', async () => {
    for (const own of [base, node.opsBase, `http://${node.grpcAddress}`]) {
      const { port } = new URL(own);
      for (const host of ['127.0.0.1', 'localhost', '127.1', '[::1]', 'localhost.'])
        expectRefused(await subscribe(order.buyer, { url: `http://${host}:${port}/` }), 400, 'invalid_argument');
    }
  });

  test('is not tested, redelivered or ended again after its end', async () => {
    const made = await subscribe(order.buyer);
    const id = made.text('id');
    await rest(base, 'DELETE', `/v1/webhooks/${id}`, order.buyer);
    const calls = [
      rest(base, 'DELETE', `/v1/webhooks/${id}`, order.buyer),
      act(order.buyer, `/v1/webhooks/${id}/test`),
      act(order.buyer, `/v1/webhooks/${id}/deliveries/${randomUUID()}/redeliver`),
    ];
    for (const call of calls) expectRefused(await call, 404, 'not_found');
    expect(await deliveriesOf(order.buyer, id)).toEqual([]);
  });
});

describe('a delivery', () => {
  test('comes after an append, verifies with the client, and is listed', async () => {
    const made = await subscribe(order.buyer, { ledger_id: order.ledgerId, event_types: ['SHIPMENT_DISPATCHED'] });
    const master = await newMaster(order);
    const appended = await append(master, order.supplier, 'SHIPMENT_DISPATCHED', { cartons: 12, weight: 1.5 });
    await receiver.until(1);
    const [webhook] = receiver.received;
    if (webhook === undefined) throw new Error('nothing came');
    const { event } = verifyWebhook(made.text('secret'), webhook.headers, webhook.raw);
    expect(event).toEqual({
      id: appended.text('event_id'),
      ledgerId: order.ledgerId,
      eventType: 'SHIPMENT_DISPATCHED',
      payload: { cartons: 12, weight: 1.5, ...master.injected },
      actorId: order.supplier.actorId,
      createdAt: appended.text('created_at'),
      seq: appended.body.seq,
      masterId: master.uuid,
      hash: appended.text('hash'),
    });
    expect(webhook.raw.toString()).not.toMatch(/prev_hash|authority|ip_address/);
    const listed = await eventually(
      () => deliveriesOf(order.buyer, made.text('id')),
      ([first]) => first?.status === 'DELIVERED',
    );
    expect(listed).toEqual([
      {
        id: shape.uuid,
        event_id: event.id,
        ledger_id: order.ledgerId,
        event_type: 'SHIPMENT_DISPATCHED',
        status: 'DELIVERED',
        attempt: 0,
        last_error: null,
        last_response_status: 200,
        created_at: shape.time,
        next_attempt_at: null,
        delivered_at: shape.time,
      },
    ]);
    await rest(base, 'DELETE', `/v1/webhooks/${made.text('id')}`, order.buyer);
  });

  test('waits half a minute for its retry after a failure', async () => {
    receiver.answer = 500;
    // A type of its own: in a cluster, events answered just before a subscription may be delivered too.
    const made = await subscribe(order.buyer, { ledger_id: order.ledgerId, event_types: ['DELAYED'] });
    const master = await newMaster(order);
    await append(master, order.buyer, 'DELAYED', {});
    await receiver.until(1);
    const [first] = await eventually(
      () => deliveriesOf(order.buyer, made.text('id')),
      ([delivery]) => delivery?.last_response_status === 500,
    );
    expect(first).toMatchObject({ status: 'PENDING', attempt: 0, last_error: 'The receiver answered 500.' });
    const waitMs = Date.parse(String(first?.next_attempt_at)) - Date.parse(String(first?.created_at));
    expect(waitMs).toBeGreaterThanOrEqual(30_000);
    expect(waitMs).toBeLessThan(35_000);
    expect(master.uuid).toBe(receiver.received[0]?.event.master_id);
    await rest(base, 'DELETE', `/v1/webhooks/${made.text('id')}`, order.buyer);
  });

  test('is a PING for a test, and the same one under the same idempotency key', async () => {
    const made = await subscribe(order.buyer, { event_types: ['NEVER'] });
    const id = made.text('id');
    const key = { 'idempotency-key': randomUUID() };
    const [one, two] = [
      await act(order.buyer, `/v1/webhooks/${id}/test`, key),
      await act(order.buyer, `/v1/webhooks/${id}/test`, key),
    ];
    expect(one?.body).toMatchObject({ event_type: 'PING', ledger_id: null, attempt: 0 });
    expect(two?.text('id')).toBe(one?.text('id'));
    await receiver.until(1);
    const listed = await eventually(
      () => deliveriesOf(order.buyer, id),
      ([first]) => first?.status === 'DELIVERED',
    );
    expect(listed).toHaveLength(1);

    const again = await act(order.buyer, `/v1/webhooks/${id}/deliveries/${one?.text('id')}/redeliver`);
    expect(again.body).toMatchObject({ event_id: one?.text('event_id'), event_type: 'PING' });
    await receiver.until(2);
    expect(receiver.received[1]?.event.id).toBe(receiver.received[0]?.event.id);
    await eventually(
      () => deliveriesOf(order.buyer, id),
      (all) => all.every(({ status }) => status === 'DELIVERED'),
    );
    expect((await deliveriesOf(order.buyer, id, '?limit=1&order=desc'))[0]?.id).toBe(again.text('id'));
    expect((await deliveriesOf(order.buyer, id, '?limit=1&offset=1'))[0]?.id).toBe(again.text('id'));
    await rest(base, 'DELETE', `/v1/webhooks/${id}`, order.buyer);
  });

  test('goes to a delegate while its grant holds', async () => {
    const auditor = await newParty(base);
    const [master, sibling] = [await newMaster(order), await newMaster(order)];
    const body = {
      master_id: master.uuid,
      delegate_actor_id: auditor.actorId,
      role: 'AUDITOR',
      permissions: { access: 'read' },
    };
    const signed = {
      traceledger_master_id: master.uuid,
      delegate_actor_id: auditor.actorId,
      role: 'AUDITOR',
      permissions: { access: 'read' },
    };
    const grant = () => ({
      headers: signedBy(order.supplier, 'MASTER_DELEGATION_GRANTED', order.ledgerId, signed),
      body,
    });
    await done(base, 'POST', '/v1/delegation/master', grant());
    await subscribe(auditor);
    await append(sibling, order.supplier, 'SIBLING', {});
    await append(master, order.supplier, 'OWN', {});
    const typesUntil = (type: string) =>
      eventually(
        async () => receiver.received.map(({ event }) => event.event_type),
        (types) => types.includes(type),
      );
    await typesUntil('OWN');
    const revoked = { delegate_actor_id: auditor.actorId, traceledger_master_id: master.uuid };
    await done(base, 'PATCH', '/v1/delegation/master', {
      headers: signedBy(order.supplier, 'MASTER_DELEGATION_REVOKED', order.ledgerId, revoked),
      body: { master_id: master.uuid, delegate_actor_id: auditor.actorId },
    });
    await append(master, order.supplier, 'AFTER', {});
    await done(base, 'POST', '/v1/delegation/master', grant());
    await append(master, order.supplier, 'GRANTED_AGAIN', {});
    const types = await typesUntil('GRANTED_AGAIN');
    // If another node writes the ledger, events answered just before the subscription may be delivered too.
    expect(types.find((type) => type !== 'MASTER_DELEGATION_GRANTED')).toBe('OWN');
    expect(types).not.toContain('SIBLING');
  });
});

test('a node with SUBSCRIPTIONS_MAX subscriptions refuses another one until one has ended', async () => {
  await using small = await runNode({ env: { SUBSCRIPTIONS_MAX: '1' } });
  const [first, second] = [await newParty(small.base), await newParty(small.base)];
  const create = (by: Party, headers: Record<string, string> = {}) =>
    rest(small.base, 'POST', '/v1/webhooks', { headers: { ...by.bearer, ...headers }, body: { url: receiver.url } });
  const key = { 'idempotency-key': randomUUID() };
  const made = await create(first, key);
  const refused = await create(second);
  expectRefused(refused, 503, 'overloaded');
  expect(refused.body.error).toMatchObject({ details: { bound: 'SUBSCRIPTIONS_MAX' } });
  expect((await create(first, key)).body).toEqual(made.body);
  const metrics = await (await fetch(`${small.opsBase}/metrics`)).text();
  expect(metrics).toMatch(/^svc_webhook_subscriptions 1$/m);
  await done(small.base, 'DELETE', `/v1/webhooks/${made.text('id')}`, first);
  expect((await create(second)).status).toBe(200);
});
