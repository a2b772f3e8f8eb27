import { afterAll, expect, test } from 'vitest';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import { MemoryLedgerStore } from '../support/memory-store/ledger-store.ts';
import { newOrganization } from '../support/organizations.ts';
import { newDevice, newParty } from '../support/parties.ts';
import { done, expectRefused, type Fields, rest } from '../support/parties-rest.ts';
import { runFaultyNode } from '../support/running-node-faulty.ts';

/** Sends a call whose store goes away once it has opened a ledger; the answer is how to send it again. */
async function openedUnseen(path: string, headers: Readonly<Record<string, string>>, body: Fields) {
  const retry = () => rest(node.base, 'POST', path, { headers: { ...headers, 'idempotency-key': 'once' }, body });
  opens = true;
  expectRefused(await retry(), 504, 'outcome_unknown');
  return retry;
}

/** Whether the store goes away with the next append. */
let opens = false;
let isAway = false;
const ledgers = new MemoryLedgerStore(() => systemClock.now());
const append = ledgers.append.bind(ledgers);
ledgers.append = async (claim, entries) => {
  await append(claim, entries);
  [isAway, opens] = [opens, false];
};
const node = await runFaultyNode({
  ledgers,
  choose: (operation) => {
    if (!isAway || operation !== 'read') return null;
    isAway = false;
    return 'unavailable';
  },
});

afterAll(() => node[Symbol.asyncDispose]());

test('a retry returns the opened ledger although its buyer has founded an organization since', async () => {
  const [buyer, supplier] = [await newParty(node.base), await newParty(node.base)];
  const retry = await openedUnseen('/v1/ledgers', buyer.bearer, { supplier_svc_id: supplier.svcId });
  await newOrganization(node.base, buyer);
  const answer = await retry();
  expect([answer.status, answer.body.buyer_organization_id]).toEqual([200, null]);
  const { body } = await done(node.base, 'GET', '/v1/ledgers?ledger_type=ORDER', supplier);
  const opened = await done(node.base, 'GET', `/v1/ledgers/${answer.body.id}`, supplier);
  expect(opened.body).toMatchObject({ id: answer.body.id, ledger_type: 'ORDER', status: 'OPEN' });
  expect(body.ledgers).toEqual([opened.body]);
});

test('a retry returns the opened engagement although its entity requires a root ledger since', async () => {
  const [{ headers }, supplier] = [await newDevice(node.base), await newParty(node.base)];
  const asked = { counterparty_actor_id: supplier.actorId, purpose: 'SERVICE' };
  const retry = await openedUnseen('/v1/engagements', headers, asked);
  await done(node.base, 'PATCH', '/v1/entities/arl-gate', { headers, body: { require_arl: true } });
  const answer = await retry();
  expect([answer.status, answer.raw]).toEqual([200, expect.any(String)]);
  const { body } = await done(node.base, 'GET', '/v1/ledgers', supplier);
  const opened = await done(node.base, 'GET', `/v1/ledgers/${answer.body.ledger_id}`, supplier);
  expect(opened.body).toMatchObject({ id: answer.body.ledger_id, ledger_type: 'ENGAGEMENT', status: 'OPEN' });
  expect(body.ledgers).toEqual([opened.body]);
  expectRefused(await rest(node.base, 'POST', '/v1/engagements', { headers, body: asked }), 409, 'arl_required');
});
