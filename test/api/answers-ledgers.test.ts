import { beforeAll, describe, expect, test } from 'vitest';
import { nodeForTests } from '../support/node-for-tests.ts';
import { newOrganization } from '../support/organizations.ts';
import {
  append,
  closeOf,
  newMaster,
  newOrder,
  newParty,
  type Order,
  type Party,
  signedBy,
} from '../support/parties.ts';
import { done, expectRefused, type Fields, rest, shape } from '../support/parties-rest.ts';

const { base } = await nodeForTests();
const [buyer, supplier] = await Promise.all([newParty(base), newParty(base)]);

const open = (by: Party, body: Fields) => rest(base, 'POST', '/v1/ledgers', by, body);

const onboard = async (by: Party): Promise<string> => (await newOrganization(base, by)).organizationId;

describe('opening a ledger', () => {
  test('names the counterparty by URI or id, from either side, and writes GENESIS and ORDER_OPENED', async () => {
    const forms: [Party, Fields][] = [
      [buyer, { supplier_svc_id: supplier.svcId }],
      [supplier, { buyer_svc_id: buyer.svcId }],
      [buyer, { buyer_actor_id: buyer.actorId, supplier_actor_id: supplier.actorId }],
      [supplier, { buyer_actor_id: buyer.actorId, supplier_actor_id: supplier.actorId }],
    ];
    for (const [by, body] of forms) {
      const made = await open(by, body);
      const order = {
        id: shape.uuid,
        buyer_actor_id: buyer.actorId,
        supplier_actor_id: supplier.actorId,
        status: 'OPEN',
        ledger_type: 'ORDER',
        buyer_organization_id: null,
        supplier_organization_id: null,
        created_at: shape.time,
      };
      expect(made.body).toEqual(order);
      const read = await done(base, 'GET', `/v1/ledgers/${made.text('id')}`, supplier);
      expect(read.body).toMatchObject(made.body);
      const events = await done(base, 'GET', `/v1/ledgers/${made.text('id')}/events`, supplier);
      const sides = { buyer_actor_id: buyer.actorId, supplier_actor_id: supplier.actorId };
      expect(
        events
          .rows('events')
          .map(({ event_type, actor_id, actor_type, payload }) => ({ event_type, actor_id, actor_type, payload })),
      ).toEqual([
        { event_type: 'GENESIS', actor_id: null, actor_type: 'service', payload: { ledger_type: 'ORDER', ...sides } },
        { event_type: 'ORDER_OPENED', actor_id: by.actorId, actor_type: 'service', payload: sides },
      ]);
    }
  });

  test('is refused to a third party', async () => {
    const stranger = await newParty(base);
    const ids = { buyer_actor_id: buyer.actorId, supplier_actor_id: supplier.actorId };
    expectRefused(await open(stranger, ids), 403, 'permission_denied');
  });

  test('sets the organization that is named, or else the first one of each party', async () => {
    const [one, two] = [await newParty(base), await newParty(base)];
    const [first, second] = [await onboard(one), await onboard(one)];
    const other = await onboard(two);
    const fixed = await open(one, { supplier_svc_id: two.svcId });
    expect(fixed.body).toMatchObject({ buyer_organization_id: first, supplier_organization_id: other });
    const named = await open(one, { supplier_svc_id: two.svcId, buyer_organization_id: second });
    expect(named.body).toMatchObject({ buyer_organization_id: second, supplier_organization_id: other });
    const events = await done(base, 'GET', `/v1/ledgers/${named.text('id')}/events?limit=1`, one);
    expect(events.rows('events')[0]?.payload).toMatchObject({
      buyer_organization_id: second,
      supplier_organization_id: other,
    });
  });
});

test('ledgers are listed by type, status and role, in order, in pages', async () => {
  const [one, two] = [await newParty(base), await newParty(base)];
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1)
    ids.push((await open(n === 1 ? two : one, { supplier_svc_id: (n === 1 ? one : two).svcId })).text('id'));
  const engagement = await done(base, 'POST', '/v1/engagements', one, {
    counterparty_actor_id: two.actorId,
    purpose: 'SERVICE',
  });
  await done(base, 'PATCH', `/v1/engagements/${engagement.text('ledger_id')}/close`, one);
  ids.push(engagement.text('ledger_id'));
  const list = async (query: string, by = one) => {
    const page = await done(base, 'GET', `/v1/ledgers?${query}`, by);
    expect(page.body).toMatchObject({ actor_id: by.actorId, count: page.rows('ledgers').length });
    return page.rows('ledgers').map((ledger) => ledger.id);
  };
  const whole = await done(base, 'GET', '/v1/ledgers', one);
  expect(whole.rows('ledgers')).toMatchObject([
    ...ids.slice(0, 3).map((id) => ({ id, ledger_type: 'ORDER', status: 'OPEN' })),
    { id: ids[3], ledger_type: 'ENGAGEMENT', status: 'CLOSED' },
  ]);
  expect(await list('ledger_type=ORDER')).toEqual(ids.slice(0, 3));
  expect(await list('status=CLOSED')).toEqual([ids[3]]);
  expect(await list('status=OPEN&order=desc')).toEqual(ids.slice(0, 3).toReversed());
  expect(await list('role=buyer')).toEqual([ids[0], ids[2]]);
  expect(await list('role=supplier')).toEqual([ids[1]]);
  expect(await list('role=primary')).toEqual([ids[3]]);
  expect(await list('role=counterparty', two)).toEqual([ids[3]]);
  expect(await list('role=delegate')).toEqual([]);
  expect(await list('limit=2&offset=1')).toEqual(ids.slice(1, 3));
  expect(await list('limit=1&ledger_type=ORDER&offset=2')).toEqual([ids[2]]);
});

describe('masters', () => {
  let order: Order;
  beforeAll(async () => {
    order = await newOrder(base);
  });

  test('are created, read and listed', async () => {
    const first = await newMaster(order, order.supplier, 'PO-1');
    const second = await newMaster(order, order.buyer, 'PO-1');
    const read = await done(base, 'GET', `/v1/traceledger/master/${first.uuid}`, order.buyer);
    expect(read.body).toEqual({
      uuid: first.uuid,
      ledger_id: order.ledgerId,
      business_ref: 'PO-1',
      scope: 'ORDER',
      status: 'OPEN',
      ledger_type: 'ORDER',
      created_at: shape.time,
    });
    const list = (query = '') =>
      done(base, 'GET', `/v1/traceledger/master?ledger_id=${order.ledgerId}${query}`, order.buyer);
    const item = (uuid: string, by: Party) => ({
      uuid,
      ledger_id: order.ledgerId,
      scope: 'ORDER',
      status: 'OPEN',
      business_ref: 'PO-1',
      created_at: shape.time,
      created_by_actor_id: by.actorId,
    });
    expect((await list()).body).toEqual({
      ledger_id: order.ledgerId,
      count: 2,
      masters: [item(first.uuid, order.supplier), item(second.uuid, order.buyer)],
    });
    expect((await list('&order=desc&limit=1')).rows('masters')).toEqual([item(second.uuid, order.buyer)]);
    expect((await list('&offset=1')).rows('masters')).toEqual([item(second.uuid, order.buyer)]);
  });

  test('return the hash of an append, which the next append may name as its cause', async () => {
    const master = await newMaster(order);
    const made = await append(master, order.buyer, 'A', { n: 1 });
    const { event_id, hash, created_at, seq } = made.body;
    expect(made.body).toEqual({
      traceledger_master_uuid: master.uuid,
      ledger_id: order.ledgerId,
      event_type: 'A',
      status: 'recorded',
      event_id: shape.uuid,
      seq: expect.any(Number),
      master_seq: 1,
      hash: shape.hash,
      created_at: shape.time,
    });
    const next = await append(master, order.supplier, 'B', { caused_by_hash: hash });
    expect(next.body).toMatchObject({ master_seq: 2, seq: Number(seq) + 1 });
    const events = await done(base, 'GET', `/v1/traceledger/master/${master.uuid}/events`, order.buyer);
    expect(events.rows('events')[1]).toMatchObject({ id: event_id, hash, created_at, seq });
    expect(events.rows('events')[2]).toMatchObject({ caused_by_hash: hash });
  });

  test('read as closed under a closed ledger, which accepts reads and revocations only', async () => {
    const closing = await newOrder(base);
    const master = await newMaster(closing);
    const friend = await newParty(base);
    const { ledgerId } = closing;
    const grant = { ledger_id: ledgerId, delegate_actor_id: friend.actorId, role: 'AUDITOR' };
    const grantIt = () =>
      rest(base, 'POST', '/v1/delegation/ledger', {
        headers: signedBy(closing.buyer, 'LEDGER_DELEGATION_GRANTED', ledgerId, grant),
        body: grant,
      });
    expect((await grantIt()).status).toBe(200);
    const { path, headers } = closeOf(closing, closing.supplier);
    await done(base, 'PATCH', path, { headers });
    expectRefused(await append(master, closing.buyer, 'LATE', {}), 409, 'ledger_closed');
    expectRefused(await grantIt(), 409, 'ledger_closed');
    const body = { ledger_id: ledgerId, business_ref: 'LATE', scope: 'ORDER' };
    const late = { headers: signedBy(closing.buyer, 'TRACELEDGER_MASTER_CREATED', ledgerId, body), body };
    expectRefused(await rest(base, 'POST', '/v1/traceledger/master', late), 409, 'ledger_closed');
    const read = await done(base, 'GET', `/v1/traceledger/master/${master.uuid}`, friend);
    expect(read.body).toMatchObject({ status: 'CLOSED' });
    const list = await done(base, 'GET', `/v1/traceledger/master?ledger_id=${ledgerId}`, friend);
    expect(list.rows('masters')).toMatchObject([{ uuid: master.uuid, scope: 'ORDER', status: 'CLOSED' }]);
    const revoke = { ledger_id: ledgerId, delegate_actor_id: friend.actorId };
    await done(base, 'PATCH', '/v1/delegation/ledger', {
      headers: signedBy(closing.buyer, 'LEDGER_DELEGATION_REVOKED', ledgerId, revoke),
      body: revoke,
    });
    expectRefused(await rest(base, 'GET', `/v1/ledgers/${ledgerId}`, friend), 404, 'not_found');
    expect((await done(base, 'GET', `/v1/ledgers/${ledgerId}`, closing.buyer)).body).toMatchObject({
      status: 'CLOSED',
    });
  });
});
