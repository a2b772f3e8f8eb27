import { expect, test } from 'vitest';
import { nodeForTests } from '../support/node-for-tests.ts';
import { newOrganization } from '../support/organizations.ts';
import {
  append,
  eventsOf,
  newDevice,
  newKeyPair,
  newMaster,
  newOrder,
  newParty,
  type Party,
} from '../support/parties.ts';
import { done, expectRefused, type Fields, rest, shape } from '../support/parties-rest.ts';
import { runNode } from '../support/running-node.ts';

const { base } = await nodeForTests();

const keysPath = (party: Party) => `/v1/actors/${party.actorId}/keys`;

/** Enrols a further key; answers the party as it signs with that one. */
async function enrol(party: Party): Promise<Party> {
  const key = newKeyPair();
  const made = await done(base, 'POST', keysPath(party), party, { public_key: key.publicKey, algorithm: 'Ed25519' });
  expect(made.body).toMatchObject({ algorithm: 'Ed25519', status: 'ACTIVE' });
  return { ...party, key, kid: made.text('kid') };
}

const revoke = (party: Party, key: string, body: unknown = { reason: 'lost' }) =>
  rest(base, 'PATCH', `${keysPath(party)}/${key}/revoke`, party, body);

async function preferred(party: Party): Promise<unknown> {
  const document = await done(base, 'GET', `/v1/resolve/${party.svcId}`);
  const listed = (await done(base, 'GET', keysPath(party))).rows('items').filter((key) => key.preferred_signing);
  expect(listed.map((key) => key.kid)).toEqual(
    document.body.preferred_signing === null ? [] : [document.body.preferred_signing],
  );
  return document.body.preferred_signing;
}

test('the first key is preferred until another one is, named by either form of its kid', async () => {
  const party = await newParty(base, { keyed: false });
  expect(await preferred(party)).toBe(null);
  const first = await enrol(party);
  expect(first.kid).toBe(`${party.svcId}#key-1`);
  const second = await enrol(party);
  expect(await preferred(party)).toBe(first.kid);
  const prefer = (key: string) => rest(base, 'PATCH', `${keysPath(party)}/${key}/prefer`, party);
  expect((await prefer(encodeURIComponent(second.kid ?? ''))).status).toBe(204);
  expect(await preferred(party)).toBe(second.kid);
  expect((await prefer('key-1')).status).toBe(204);
  expect(await preferred(party)).toBe(first.kid);
  for (const odd of [
    'key-01',
    'key-3',
    'KEY-1',
    'svc:authority%23key-1',
    encodeURIComponent(`svc:actor:${base}#key-1`),
  ]) {
    expectRefused(await prefer(odd), 404, 'not_found');
  }
});

test('a key id of an actor without keys is unknown, with and without a signature', async () => {
  const order = await newOrder(base, { keyed: false });
  const master = await newMaster(order);
  const event = { event_type: 'NOTED', payload: { n: 1 } };
  const path = `/v1/traceledger/master/${master.uuid}/events`;
  const named = { ...order.buyer.bearer, 'x-signing-key-id': `${order.buyer.svcId}#key-1` };
  for (const headers of [named, { ...named, 'x-actor-sig': Buffer.alloc(64, 7).toString('base64') }]) {
    expectRefused(await rest(base, 'POST', path, { headers, body: event }), 401, 'unknown_signing_key');
  }
  expect((await rest(base, 'POST', path, order.buyer, event)).status).toBe(200);
});

test('a revoked key is hidden by default, shown with its end, and never active again', async () => {
  const party = await newParty(base);
  expect((await revoke(party, 'key-1')).status).toBe(204);
  expect((await done(base, 'GET', keysPath(party))).rows('items')).toEqual([]);
  const [key] = (await done(base, 'GET', `${keysPath(party)}?include_revoked=true`)).rows('items');
  const history = {
    kid: party.kid,
    algorithm: 'Ed25519',
    public_key: party.key.publicKey,
    status: 'REVOKED',
    preferred_signing: false,
    valid_from: shape.time,
    created_at: shape.time,
    revoked_at: shape.time,
    revoked_reason: 'lost',
  };
  expect(key).toEqual(history);
  const document = await done(base, 'GET', `/v1/resolve/${party.svcId}`);
  expect(document.body).toMatchObject({ keys: [history], preferred_signing: null });
  const prefer = await rest(base, 'PATCH', `${keysPath(party)}/key-1/prefer`, party);
  expectRefused(prefer, 409, 'key_not_active');
  const again = await revoke(party, 'key-1');
  expectRefused(again, 409, 'key_not_active');
});

test('the newest active key follows a revoked preferred key', async () => {
  const party = await newParty(base);
  const second = await enrol(party);
  const third = await enrol(party);
  await revoke(party, 'key-1');
  expect(await preferred(party)).toBe(third.kid);
  await revoke(party, 'key-3');
  expect(await preferred(party)).toBe(second.kid);
  await revoke(party, 'key-2');
  expect(await preferred(party)).toBe(null);
});

test('an actor without an active key must enrol one, and its earlier signatures stay valid', async () => {
  const order = await newOrder(base);
  const master = await newMaster(order);
  const { buyer } = order;
  expect((await append(master, buyer, 'NOTED', { n: 1 })).status).toBe(200);
  await revoke(buyer, 'key-1');
  const unsigned = await append(master, { ...buyer, kid: null }, 'NOTED', { n: 2 });
  expectRefused(unsigned, 401, 'signature_required');
  expect(unsigned.body.error).toMatchObject({
    message: expect.stringMatching(/keys are all revoked.*enrol a new one/),
  });
  expectRefused(await append(master, buyer, 'NOTED', { n: 2 }), 401, 'signing_key_revoked');
  const renewed = await enrol(buyer);
  expect(renewed.kid).toBe(`${buyer.svcId}#key-2`);
  expect((await append(master, renewed, 'NOTED', { n: 2 })).status).toBe(200);
  expectRefused(await append(master, buyer, 'NOTED', { n: 3 }), 401, 'signing_key_revoked');
  const events = await eventsOf(base, buyer, order.ledgerId, '&verify=signatures');
  expect(events.filter((event) => event.event_type === 'NOTED').map((event) => event.signing_key_id)).toEqual([
    buyer.kid,
    renewed.kid,
  ]);
});

test('no append under a key is accepted after the answer to its revocation, while 50 are in flight', async () => {
  const order = await newOrder(base);
  const master = await newMaster(order);
  for (let round = 0; round < 4; round += 1) {
    const signer = await enrol(order.buyer);
    let revokedAnswered = false;
    const lateSuccesses: number[] = [];
    const load = Array.from({ length: 50 }, async (_, lane) => {
      for (let n = 0; n < 3; n += 1) {
        const startedAfter = revokedAnswered;
        const answer = await append(master, signer, 'NOTED', { round, lane, n });
        if (answer.status === 200 && startedAfter) lateSuccesses.push(lane);
        if (answer.status !== 200) expectRefused(answer, 401, 'signing_key_revoked');
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 15 * round));
    const answer = await revoke(order.buyer, String(signer.kid).split('#')[1] ?? '');
    expect(answer.status).toBe(204);
    revokedAnswered = true;
    await Promise.all(load);
    expect(lateSuccesses).toEqual([]);
    const keys = (await done(base, 'GET', `${keysPath(order.buyer)}?include_revoked=true`)).rows('items');
    const end = String(keys.find((key: Fields) => key.kid === signer.kid)?.revoked_at);
    const events = await eventsOf(base, order.buyer, order.ledgerId, '&verify=signatures');
    for (const event of events.filter((one) => one.signing_key_id === signer.kid)) {
      expect(String(event.created_at) < end).toBe(true);
    }
    expectRefused(await append(master, signer, 'NOTED', { round, late: true }), 401, 'signing_key_revoked');
  }
});

test('a node refuses changes beyond CHANGES_WAITING of what too many calls change at once', async () => {
  await using small = await runNode({ env: { CHANGES_WAITING: '1' } });
  const party = await newParty(small.base, { keyed: true });
  const { organizationId } = await newOrganization(small.base, party);
  const device = { headers: (await newDevice(small.base)).headers };
  const calls = [
    ['PATCH', `${keysPath(party)}/key-1/prefer`, party],
    ['PATCH', `/v1/organizations/${organizationId}/enrich`, party, { city: 'Ulm' }],
    ['PATCH', '/v1/entities/arl-gate', { ...device, body: { require_arl: true } }],
    ['POST', '/v1/developer/keys', party, { name: 'another' }],
    ['POST', '/v1/webhooks', party, { url: 'https://hooks.example/' }],
  ] as const;
  for (const [method, path, by, body] of calls) {
    const refused = [];
    // How many come at once depends on the machine.
    for (let round = 0; round < 10 && refused.length === 0; round++) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => rest(small.base, method, path, by, body)));
      refused.push(...answers.filter(({ status }) => status >= 300));
      expect(refused.length).toBeLessThan(answers.length);
    }
    expect(refused, path).not.toEqual([]);
    for (const answer of refused) {
      expectRefused(answer, 503, 'overloaded');
      expect(answer.body.error).toMatchObject({ details: { bound: 'CHANGES_WAITING' } });
    }
  }
});
