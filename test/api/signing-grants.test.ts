import { describe, expect, test } from 'vitest';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { newOrganization } from '../support/organizations.ts';
import { newParty, type Party, signedBy } from '../support/parties.ts';
import { done, expectRefused, type Fields, rest, shape } from '../support/parties-rest.ts';

const { base, order, master } = await nodeWithMaster();
const { organizationId, frlLedgerId } = await newOrganization(base, order.supplier);

/** The three scopes: how the body names the object, how the signed form does, and whose ledger id is signed. */
const scopes = {
  organization: {
    type: 'SUPPLIER_DELEGATION',
    sent: () => ({ organization_id: organizationId }),
    signed: () => ({ organization_id: organizationId }),
    ledgerId: () => frlLedgerId,
  },
  ledger: {
    type: 'LEDGER_DELEGATION',
    sent: () => ({ ledger_id: order.ledgerId }),
    signed: () => ({ ledger_id: order.ledgerId }),
    ledgerId: () => order.ledgerId,
  },
  master: {
    type: 'MASTER_DELEGATION',
    sent: () => ({ master_id: master.uuid }),
    signed: () => ({ traceledger_master_id: master.uuid }),
    ledgerId: () => order.ledgerId,
  },
} as const;
const scopeNames = Object.keys(scopes) as (keyof typeof scopes)[];

async function grant(scope: keyof typeof scopes, body: Fields, form: Fields, by: Party = order.supplier) {
  const { type, sent, ledgerId } = scopes[scope];
  return rest(base, 'POST', `/v1/delegation/${scope}`, {
    headers: signedBy(by, `${type}_GRANTED`, ledgerId(), form),
    body: { ...sent(), ...body },
  });
}

async function lastEvent(ledgerId: string): Promise<Fields> {
  const page = await done(base, 'GET', `/v1/ledgers/${ledgerId}/events?order=desc&limit=1`, order.supplier);
  return page.rows('events')[0] ?? {};
}

describe.each(scopeNames)('a grant at %s scope', (scope) => {
  const { type, sent, signed, ledgerId } = scopes[scope];

  test('is signed over object, delegate, role and all permissions', async () => {
    const { actorId } = await newParty(base);
    const asked = { delegate_actor_id: actorId, role: 'OPS', permissions: { access: 'read', note: [1, { b: null }] } };
    const made = await grant(scope, asked, { ...signed(), ...asked });
    expect(made.body).toEqual({
      link_id: shape.uuid,
      delegate_actor_id: actorId,
      role: 'OPS',
      is_active: true,
      granted_at: shape.time,
    });
    const event = await lastEvent(ledgerId());
    expect(event).toMatchObject({
      event_type: `${type}_GRANTED`,
      actor_sig: shape.signature,
      created_at: made.text('granted_at'),
      actor_sig_payload: { ...signed(), ...asked },
      payload: { ...signed(), ...asked, link_id: made.text('link_id'), granted_at: made.text('granted_at') },
    });
    expect(event.payload).not.toHaveProperty('expires_at');
    expect(event.payload).not.toHaveProperty('replaces_link_id');

    const second = await grant(scope, { ...asked, role: 'AUDITOR' }, { ...signed(), ...asked, role: 'AUDITOR' });
    expect(second.status).toBe(200);
    expect((await lastEvent(ledgerId())).payload).toMatchObject({
      link_id: second.text('link_id'),
      replaces_link_id: made.text('link_id'),
    });
  });

  test.each([true, false])('without permissions is accepted with the permissions {} signed: %s', async (withKey) => {
    const { actorId } = await newParty(base);
    const asked = { delegate_actor_id: actorId, role: 'AUDITOR' };
    const form = { ...signed(), ...asked, ...(withKey ? { permissions: {} } : {}) };
    expect((await grant(scope, asked, form)).status).toBe(200);
    expect((await lastEvent(ledgerId())).actor_sig_payload).toEqual(form);
  });

  test('needs its permissions signed, and refuses expires_at and misspelt keys', async () => {
    const { actorId } = await newParty(base);
    const asked = { delegate_actor_id: actorId, role: 'OPS', permissions: { access: 'write' } };
    const { permissions: _, ...without } = asked;
    expectRefused(await grant(scope, asked, { ...signed(), ...without }), 401, 'invalid_signature');
    expectRefused(await grant(scope, asked, { ...sent(), ...asked, extra: 1 }), 401, 'invalid_signature');
    for (const field of ['permission', 'expires_at']) {
      const body = { ...without, [field]: {} };
      const answer = await grant(scope, body, { ...signed(), ...body });
      expectRefused(answer, 400, 'invalid_argument');
      expect(answer.body.error).toMatchObject({ details: { field } });
    }
  });

  test('is revoked by object and delegate, and a missing or ended grant is not_found', async () => {
    const { actorId } = await newParty(base);
    const asked = { delegate_actor_id: actorId, role: 'OPS' };
    const made = await grant(scope, asked, { ...signed(), ...asked });
    const revoke = (form: Fields, delegate = actorId) =>
      rest(base, 'PATCH', `/v1/delegation/${scope}`, {
        headers: signedBy(order.supplier, `${type}_REVOKED`, ledgerId(), form),
        body: { ...sent(), delegate_actor_id: delegate },
      });
    const form = { ...signed(), delegate_actor_id: actorId };
    expectRefused(await revoke({ ...form, role: 'OPS' }), 401, 'invalid_signature');
    const over = await revoke(form);
    expect(over.body).toEqual({ link_id: made.text('link_id'), delegate_actor_id: actorId, revoked_at: shape.time });
    expect(await lastEvent(ledgerId())).toMatchObject({
      event_type: `${type}_REVOKED`,
      payload: { ...form, link_id: made.text('link_id'), revoked_at: over.text('revoked_at') },
      actor_sig_payload: form,
    });
    expectRefused(await revoke(form), 404, 'not_found');
    const { actorId: never } = await newParty(base);
    expectRefused(await revoke({ ...signed(), delegate_actor_id: never }, never), 404, 'not_found');
  });
});

test('POST …/access needs no signature, and checks and keeps one over the body as it was sent', async () => {
  const { actorId } = await newParty(base);
  const path = `/v1/traceledger/master/${master.uuid}/access`;
  // A time as callers write it: the service shows it in its own form, the signature is over theirs.
  const body = { actor_id: actorId, access: 'read', expires_at: '2031-01-01T02:00:00+02:00' };
  const form = {
    access: 'read',
    delegate_actor_id: actorId,
    expires_at: body.expires_at,
    traceledger_master_id: master.uuid,
  };
  const wrong = signedBy(order.buyer, 'MASTER_DELEGATION_GRANTED', order.ledgerId, { ...form, access: 'write' });
  expectRefused(await rest(base, 'POST', path, { headers: wrong, body }), 401, 'invalid_signature');
  const headers = signedBy(order.buyer, 'MASTER_DELEGATION_GRANTED', order.ledgerId, form);
  const made = await done(base, 'POST', path, { headers, body });
  expect(made.body).toEqual({
    link_id: shape.uuid,
    master_id: master.uuid,
    delegate_actor_id: actorId,
    access: 'read',
    is_active: true,
    granted_at: shape.time,
    expires_at: '2031-01-01T00:00:00.000Z',
  });
  expect(await lastEvent(order.ledgerId)).toMatchObject({
    event_type: 'MASTER_DELEGATION_GRANTED',
    actor_sig: headers['x-actor-sig'],
    actor_sig_payload: form,
  });
  const unsigned = await done(base, 'POST', path, order.buyer, { actor_id: actorId, access: 'write' });
  expect(unsigned.body).toMatchObject({ access: 'write', expires_at: null });
  const list = await done(base, 'GET', path, order.buyer);
  expect(list.body).toEqual({ count: list.rows('access').length, access: expect.arrayContaining([unsigned.body]) });
  expect(list.rows('access').filter((item) => item.delegate_actor_id === actorId)).toHaveLength(1);
  const end = `${path}/${unsigned.text('link_id')}`;
  expect((await done(base, 'DELETE', end, order.buyer)).status).toBe(204);
  expectRefused(await rest(base, 'DELETE', end, order.buyer), 404, 'not_found');
});
