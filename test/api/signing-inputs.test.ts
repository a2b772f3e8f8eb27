import { describe, expect, test } from 'vitest';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { newOrganization } from '../support/organizations.ts';
import { append, newMaster, otherOrder, type Party, signedBy } from '../support/parties.ts';
import { done, expectRefused, type Fields, type RestAnswer, rest } from '../support/parties-rest.ts';

const { base, order } = await nodeWithOrder();

const organization = await newOrganization(base, order.supplier);
/** The supplier has an organization when this ledger is opened, the buyer has none. */
const withOrganization = { ...(await otherOrder(order)), ...organization };

/** The newest event of a ledger. */
async function newest(ledgerId: string, by: Party = order.supplier): Promise<Fields> {
  const page = await done(base, 'GET', `/v1/ledgers/${ledgerId}/events?order=desc&limit=1&verify=signatures`, by);
  expect(page.body.integrity).toEqual({ verified: true, issues: [] });
  return page.rows('events')[0] ?? {};
}

/** Calls signed over each form, and then unsigned and over a form with one key more: those must fail. */
async function refusesOthers(
  call: (headers: Record<string, string>) => Promise<RestAnswer>,
  by: Party,
  eventType: string,
  ledgerId: string,
  form: Fields,
): Promise<void> {
  expectRefused(await call({ ...by.bearer }), 401, 'signature_required');
  const others = [{ ...form, extra: 1 }, Object.fromEntries(Object.entries(form).slice(1)), {}];
  for (const other of others) {
    const answer = await call(signedBy(by, eventType, ledgerId, other));
    expectRefused(answer, 401, 'invalid_signature');
    expect(answer.body.error).toMatchObject({ details: { event_type: eventType, ledger_id: ledgerId } });
  }
  expectRefused(await call(signedBy(by, `${eventType}X`, ledgerId, form)), 401, 'invalid_signature');
  expectRefused(await call(signedBy(by, eventType, by.actorId, form)), 401, 'invalid_signature');
}

describe('LEDGER_CLOSED', () => {
  const closing = (ledgerId: string) => (headers: Record<string, string>) =>
    rest(base, 'PATCH', `/v1/ledgers/${ledgerId}/close`, { headers });

  test.each([false, true])('of an order is signed with absent organizations as null: %s', async (nulls) => {
    const { ledgerId } = await otherOrder(order);
    const { buyer, supplier } = order;
    const form = {
      ledger_id: ledgerId,
      ledger_type: 'ORDER',
      requested_by_actor_id: buyer.actorId,
      status: 'CLOSED',
      buyer_actor_id: buyer.actorId,
      supplier_actor_id: supplier.actorId,
      supplier_organization_id: withOrganization.organizationId,
      ...(nulls ? { buyer_organization_id: null } : {}),
    };
    await refusesOthers(closing(ledgerId), buyer, 'LEDGER_CLOSED', ledgerId, form);
    const headers = signedBy(buyer, 'LEDGER_CLOSED', ledgerId, form);
    expect((await closing(ledgerId)(headers)).body).toEqual({ ledger_id: ledgerId, status: 'CLOSED' });
    const event = await newest(ledgerId);
    const { buyer_organization_id: _, ...stored } = { buyer_organization_id: null, ...form };
    expect(event).toMatchObject({
      event_type: 'LEDGER_CLOSED',
      actor_id: buyer.actorId,
      actor_sig: null,
      signing_key_id: null,
    });
    expect(event.actor_sig_payload).toEqual(form);
    expect(event.payload).toEqual({
      ...stored,
      requestor_sig: headers['x-actor-sig'],
      requestor_signing_key_id: buyer.kid,
    });
    expectRefused(await closing(ledgerId)(headers), 409, 'ledger_closed');
  });
});

describe('masters', () => {
  test('are created with a signature over the three fields of the body', async () => {
    const { ledgerId, supplier } = order;
    const body = { ledger_id: ledgerId, business_ref: 'PO-7', scope: 'PROCESS' };
    const create = (headers: Record<string, string>) => rest(base, 'POST', '/v1/traceledger/master', { headers, body });
    await refusesOthers(create, supplier, 'TRACELEDGER_MASTER_CREATED', ledgerId, body);
    const headers = signedBy(supplier, 'TRACELEDGER_MASTER_CREATED', ledgerId, body);
    const made = await create(headers);
    expect(made.body).toMatchObject({ ...body, status: 'OPEN', ledger_type: 'ORDER' });
    const event = await newest(ledgerId);
    expect(event).toMatchObject({
      event_type: 'TRACELEDGER_MASTER_CREATED',
      master_id: made.text('uuid'),
      master_seq: 0,
      actor_sig: headers['x-actor-sig'],
      signing_key_id: supplier.kid,
      authority_sig: null,
      actor_sig_payload: body,
    });
  });

  test.each([false, true])('are closed with absent organizations signed as null: %s', async (nulls) => {
    const { buyer, supplier } = order;
    const master = await newMaster({ ...order, ledgerId: withOrganization.ledgerId });
    const form = {
      traceledger_master_uuid: master.uuid,
      ledger_id: master.ledgerId,
      ledger_type: 'ORDER',
      requested_by_actor_id: buyer.actorId,
      status: 'CLOSED',
      supplier_actor_id: supplier.actorId,
      supplier_organization_id: withOrganization.organizationId,
      ...(nulls ? { buyer_organization_id: null } : {}),
    };
    const close = (headers: Record<string, string>) =>
      rest(base, 'PATCH', `/v1/traceledger/master/${master.uuid}/close`, { headers });
    await refusesOthers(close, buyer, 'MASTER_CLOSED', master.ledgerId, form);
    const headers = signedBy(buyer, 'MASTER_CLOSED', master.ledgerId, form);
    expect((await close(headers)).body).toEqual({
      traceledger_master_uuid: master.uuid,
      ledger_id: master.ledgerId,
      status: 'CLOSED',
    });
    const event = await newest(master.ledgerId);
    expect(event).toMatchObject({ event_type: 'MASTER_CLOSED', actor_sig: headers['x-actor-sig'] });
    expect(event.actor_sig_payload ?? event.payload).toEqual(form);
    expectRefused(await close(headers), 409, 'master_closed');
    expectRefused(await append(master, supplier, 'LATE', {}), 409, 'master_closed');
  });
});
