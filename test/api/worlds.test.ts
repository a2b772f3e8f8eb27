import { expect, test } from 'vitest';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { newDevice, newParty } from '../support/parties.ts';
import { done, expectRefused, rest } from '../support/parties-rest.ts';

const { base, order } = await nodeWithOrder();
const [one, two] = await Promise.all([newParty(base), newParty(base)]);

const uri = (actorId: string) => `svc:actor:${actorId}`;

test('an actor of no world may be a party in both', async () => {
  const worldless = (await done(base, 'POST', '/v1/actors', { body: {} })).text('actor_id');
  for (const bearer of [one.bearer, one.production.bearer]) {
    const made = await rest(base, 'POST', '/v1/ledgers', {
      headers: bearer,
      body: { supplier_svc_id: uri(worldless) },
    });
    expect(made.status).toBe(200);
  }
});

test('an entity has the world of its owner, and without an owner none', async () => {
  const own = await newDevice(base, { owner: one });
  const engage = (device: { headers: Readonly<Record<string, string>> }, counterparty_actor_id: string) =>
    rest(base, 'POST', '/v1/engagements', {
      headers: device.headers,
      body: { counterparty_actor_id, purpose: 'SERVICE' },
    });
  expect((await engage(own, two.actorId)).status).toBe(200);
  expectRefused(await engage(own, two.production.actorId), 403, 'environment_mismatch');
  const free = await newDevice(base);
  const inProduction = await engage(free, two.production.actorId);
  expect(inProduction.status).toBe(200);
  expect((await engage(free, two.actorId)).status).toBe(200);

  // The ledger of a production party is of the production world, so a sandbox delegate has no place in it.
  const ledgerId = inProduction.text('ledger_id');
  const body = { ledger_id: ledgerId, delegate_actor_id: one.actorId, role: 'AUDITOR' };
  const grant = await rest(base, 'POST', '/v1/delegation/ledger', two.production, body);
  expectRefused(grant, 403, 'environment_mismatch');
});

test('beside a party of no world only actors of the world of the other party are let in', async () => {
  const free = await newDevice(base);
  const body = { counterparty_actor_id: two.production.actorId, purpose: 'SERVICE' };
  const ledger_id = (await done(base, 'POST', '/v1/engagements', { headers: free.headers, body })).text('ledger_id');
  const master = { ledger_id, business_ref: 'PO-1', scope: 'ORDER' };
  const made = await done(base, 'POST', '/v1/traceledger/master', { headers: free.headers, body: master });
  const grantTo = (actor_id: string) =>
    rest(base, 'POST', `/v1/traceledger/master/${made.text('uuid')}/access`, {
      headers: free.headers,
      body: { actor_id, access: 'read' },
    });
  expectRefused(await grantTo(one.actorId), 403, 'environment_mismatch');
  expect((await grantTo(one.production.actorId)).status).toBe(200);
});

test('an API key reads and changes its own world only', async () => {
  const path = `/v1/ledgers/${order.ledgerId}`;
  expectRefused(await rest(base, 'GET', path, order.buyer.production), 404, 'not_found');
  expectRefused(await rest(base, 'GET', `${path}/events`, order.buyer.production), 404, 'not_found');
  const network = await done(base, 'GET', '/v1/network/actors?limit=1000&order=desc', one.production);
  const seen = network.rows('actors').map((actor) => actor.actor_id);
  expect(seen).toContain(two.production.actorId);
  expect(seen).not.toContain(two.actorId);
  const me = await done(base, 'GET', '/v1/developer/me', one.production);
  expect(me.body).toMatchObject({ environment: 'production', actor_id: one.production.actorId });
  const made = await done(base, 'POST', '/v1/developer/keys', one.production, { name: 'more' });
  expect(made.body).toMatchObject({ environment: 'production' });
  expect(made.text('api_key')).toMatch(/^svc_sk_live_eu_/);
});
