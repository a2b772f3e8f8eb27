import { expect, test } from 'vitest';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { append, newMaster, newParty, type Party } from '../support/parties.ts';
import { expectRefused, type Fields, type RestAnswer, rest } from '../support/parties-rest.ts';

const { node, order } = await nodeWithOrder({ keyed: false });

const newcomer = () => newParty(node.base, { keyed: false });
const change = (method: 'POST' | 'PATCH', by: Party, delegate: Party, more: Fields = {}): Promise<RestAnswer> =>
  rest(node.base, method, '/v1/delegation/ledger', {
    headers: by.bearer,
    body: { ledger_id: order.ledgerId, delegate_actor_id: delegate.actorId, ...more },
  });
const read = (by: Party) => rest(node.base, 'GET', `/v1/ledgers/${order.ledgerId}/events`, { headers: by.bearer });

test('an OWNER whose permissions say read only reads: it cannot give itself more', async () => {
  const owner = await newcomer();
  const master = await newMaster(order);
  expect((await change('POST', order.buyer, owner, { role: 'OWNER', permissions: { access: 'read' } })).status).toBe(
    200,
  );
  expect((await read(owner)).status).toBe(200);
  expectRefused(await append(master, owner, 'X', {}), 403, 'permission_denied');
  expectRefused(await change('POST', owner, owner, { role: 'OWNER' }), 403, 'permission_denied');
  expectRefused(await change('POST', owner, await newcomer(), { role: 'AUDITOR' }), 403, 'permission_denied');
  expectRefused(await change('PATCH', owner, owner), 403, 'permission_denied');
});

test('what an OWNER granted outlives it, and what it was is over at once', async () => {
  const [owner, second, reader] = [await newcomer(), await newcomer(), await newcomer()];
  expect((await change('POST', order.supplier, owner, { role: 'OWNER' })).status).toBe(200);
  expect((await change('POST', owner, second, { role: 'OWNER' })).status).toBe(200);
  expect((await change('POST', second, reader, { role: 'AUDITOR' })).status).toBe(200);
  expect((await change('PATCH', second, owner)).status).toBe(200);
  expectRefused(await read(owner), 404, 'not_found');
  expectRefused(await change('PATCH', owner, reader), 404, 'not_found');
  expectRefused(await change('POST', owner, owner, { role: 'OWNER' }), 404, 'not_found');
  expect((await read(reader)).status).toBe(200);
  expect((await change('PATCH', second, second)).status).toBe(200);
  expectRefused(await change('POST', second, owner, { role: 'OWNER' }), 404, 'not_found');
});
