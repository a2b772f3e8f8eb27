import { beforeAll, describe, expect, test } from 'vitest';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { newOrganization } from '../support/organizations.ts';
import { newMaster, newParty, type Party } from '../support/parties.ts';
import { done, expectRefused, type Fields, rest } from '../support/parties-rest.ts';

/** Nobody here has a key, so that no call is about signatures. */
const { base, order, master } = await nodeWithMaster({ keyed: false });
/** The master that delegates have, and its sibling. */
const mine = master.uuid;
const sibling = (await newMaster(order)).uuid;
const callers: Record<string, Readonly<Record<string, string>>> = {};

const grant = (scope: string, body: Fields, by: Party = order.buyer) =>
  done(base, 'POST', `/v1/delegation/${scope}`, { headers: by.bearer, body });

beforeAll(async () => {
  const made: Record<string, Party> = {};
  for (const name of ['stranger', 'reader', 'writer', 'owner', 'masterReader', 'masterWriter', 'revoked', 'expired']) {
    made[name] = await newParty(base, { keyed: false });
    callers[name] = made[name].bearer;
  }
  const id = (name: string) => made[name]?.actorId;
  const ledger = { ledger_id: order.ledgerId };
  await grant('ledger', { ...ledger, delegate_actor_id: id('reader'), role: 'AUDITOR' });
  await grant('ledger', { ...ledger, delegate_actor_id: id('writer'), role: 'OPS' });
  await grant('ledger', { ...ledger, delegate_actor_id: id('owner'), role: 'OWNER' });
  await grant('master', {
    master_id: mine,
    delegate_actor_id: id('masterReader'),
    role: 'OPS',
    permissions: { access: 'read' },
  });
  await grant('master', {
    master_id: mine,
    delegate_actor_id: id('masterWriter'),
    role: 'AUDITOR',
    permissions: { access: 'write' },
  });
  await grant('ledger', { ...ledger, delegate_actor_id: id('revoked'), role: 'OWNER' });
  await done(base, 'PATCH', '/v1/delegation/ledger', {
    headers: order.buyer.bearer,
    body: { ...ledger, delegate_actor_id: id('revoked') },
  });
  const expires_at = new Date(Date.now() + 300).toISOString();
  await done(base, 'POST', `/v1/traceledger/master/${mine}/access`, {
    headers: order.buyer.bearer,
    body: { actor_id: id('expired'), access: 'write', expires_at },
  });
  callers.party = order.supplier.bearer;
  callers.nobody = {};
  callers.otherWorld = order.supplier.production.bearer;
  await new Promise((resolve) => setTimeout(resolve, 350));
});

type Attempt = readonly [method: string, path: string, body?: Fields];

/** What may be tried, each time with something new to make. */
const attempts = {
  getLedger: (): Attempt => ['GET', `/v1/ledgers/${order.ledgerId}`],
  ledgerEvents: (): Attempt => ['GET', `/v1/ledgers/${order.ledgerId}/events`],
  listMasters: (): Attempt => ['GET', `/v1/traceledger/master?ledger_id=${order.ledgerId}`],
  getMine: (): Attempt => ['GET', `/v1/traceledger/master/${mine}`],
  eventsOfMine: (): Attempt => ['GET', `/v1/traceledger/master/${mine}/events`],
  accessOfMine: (): Attempt => ['GET', `/v1/traceledger/master/${mine}/access`],
  membersOfMine: (): Attempt => ['GET', `/v1/delegation/master?master_id=${mine}`],
  proofOfMine: (): Attempt => ['GET', `/v1/delegation/proof?master_id=${mine}`],
  snapshotOfMine: (): Attempt => ['GET', `/v1/delegation/snapshot?master_id=${mine}`],
  appendToMine: (): Attempt => ['POST', `/v1/traceledger/master/${mine}/events`, { event_type: 'X', payload: {} }],
  getSibling: (): Attempt => ['GET', `/v1/traceledger/master/${sibling}`],
  eventsOfSibling: (): Attempt => ['GET', `/v1/traceledger/master/${sibling}/events`],
  appendToSibling: (): Attempt => [
    'POST',
    `/v1/traceledger/master/${sibling}/events`,
    { event_type: 'X', payload: {} },
  ],
  members: (): Attempt => ['GET', `/v1/delegation/ledger?ledger_id=${order.ledgerId}`],
  proof: (): Attempt => ['GET', `/v1/delegation/proof?ledger_id=${order.ledgerId}`],
  snapshot: (): Attempt => ['GET', `/v1/delegation/snapshot?ledger_id=${order.ledgerId}`],
  createMaster: (): Attempt => [
    'POST',
    '/v1/traceledger/master',
    { ledger_id: order.ledgerId, business_ref: 'N', scope: 'ORDER' },
  ],
  grantLedger: (to: string): Attempt => [
    'POST',
    '/v1/delegation/ledger',
    { ledger_id: order.ledgerId, delegate_actor_id: to, role: 'AUDITOR' },
  ],
  grantMine: (to: string): Attempt => [
    'POST',
    '/v1/delegation/master',
    { master_id: mine, delegate_actor_id: to, role: 'AUDITOR' },
  ],
  accessToMine: (to: string): Attempt => [
    'POST',
    `/v1/traceledger/master/${mine}/access`,
    { actor_id: to, access: 'read' },
  ],
  closeMine: (): Attempt => ['PATCH', `/v1/traceledger/master/${mine}/close`],
  closeLedger: (): Attempt => ['PATCH', `/v1/ledgers/${order.ledgerId}/close`],
} as const;
type Name = keyof typeof attempts;
const names = Object.keys(attempts) as Name[];

const ledgerReads: Name[] = [
  'getLedger',
  'ledgerEvents',
  'listMasters',
  'members',
  'proof',
  'snapshot',
  'getSibling',
  'eventsOfSibling',
];
const masterReads: Name[] = [
  'getMine',
  'eventsOfMine',
  'accessOfMine',
  'membersOfMine',
  'proofOfMine',
  'snapshotOfMine',
];
const siblings: Name[] = ['getSibling', 'eventsOfSibling', 'appendToSibling'];
const writes: Name[] = ['appendToMine', 'appendToSibling', 'createMaster'];
const segment: Name[] = ['getLedger', 'ledgerEvents', 'listMasters'];

const everything = (answer: string) => Object.fromEntries(names.map((name) => [name, answer]));
const some = (list: readonly Name[], answer: string) => Object.fromEntries(list.map((name) => [name, answer]));

/** What each caller is told: `ok` or a code. */
const expected: Record<string, Record<string, string>> = {
  nobody: everything('unauthenticated'),
  stranger: everything('not_found'),
  otherWorld: everything('not_found'),
  revoked: everything('not_found'),
  reader: { ...everything('permission_denied'), ...some([...ledgerReads, ...masterReads], 'ok') },
  writer: { ...everything('permission_denied'), ...some([...ledgerReads, ...masterReads, ...writes], 'ok') },
  owner: { ...everything('ok'), ...some(['closeMine', 'closeLedger'], 'permission_denied') },
  masterReader: {
    ...everything('permission_denied'),
    ...some([...segment, ...masterReads], 'ok'),
    ...some(siblings, 'not_found'),
  },
  masterWriter: {
    ...everything('permission_denied'),
    ...some([...segment, ...masterReads, 'appendToMine'], 'ok'),
    ...some(siblings, 'not_found'),
  },
  expired: { ...everything('access_expired'), ...some(siblings, 'not_found') },
};

test.each(Object.keys(expected))('%s may do what the grant says, and is told no more', async (name) => {
  const found: Record<string, string> = {};
  for (const what of names) {
    const { actorId } = await newParty(base, { keyed: false });
    const [method, path, body] = attempts[what](actorId);
    const answer = await rest(base, method, path, { headers: callers[name] ?? {}, body });
    found[what] = answer.code ?? 'ok';
  }
  expect(found).toEqual(expected[name]);
});

describe('what a master delegate sees of the ledger', () => {
  test('its own events, and those of no master; nothing of the sibling, not in counts either', async () => {
    const headers = callers.masterReader ?? {};
    const page = await done(base, 'GET', `/v1/ledgers/${order.ledgerId}/events?limit=1000`, { headers });
    expect(page.body.integrity).toEqual({ verified: true, issues: [] });
    const masters = new Set(page.rows('events').map((event) => event.master_id));
    expect([...masters].toSorted()).toEqual([mine, null].toSorted());
    const all = await done(base, 'GET', `/v1/ledgers/${order.ledgerId}/events?limit=1000`, {
      headers: order.buyer.bearer,
    });
    const visible = all.rows('events').filter((event) => event.master_id === null || event.master_id === mine);
    expect(page.rows('events')).toEqual(visible);
    expect(page.body.count).toBe(visible.length);
    const foreign = all.rows('events').find((event) => event.master_id === sibling);
    const byId = await done(base, 'GET', `/v1/ledgers/${order.ledgerId}/events?event_id=${foreign?.id}`, { headers });
    expect(byId.body).toMatchObject({ count: 0, events: [] });
    const list = await done(base, 'GET', `/v1/traceledger/master?ledger_id=${order.ledgerId}`, { headers });
    expect(list.body).toEqual({
      ledger_id: order.ledgerId,
      count: 1,
      masters: [{ uuid: mine, scope: 'ORDER', status: 'OPEN' }],
    });
    const access = await done(base, 'GET', `/v1/traceledger/master/${mine}/access`, { headers });
    expect(access.body.count).toBe(1);
  });

  test('and of the lists of ledgers: those that it is delegated, by role', async () => {
    for (const name of ['masterReader', 'reader']) {
      const list = (query: string) => done(base, 'GET', `/v1/ledgers?${query}`, { headers: callers[name] ?? {} });
      const one = [{ id: order.ledgerId, ledger_type: 'ORDER', status: 'OPEN' }];
      expect((await list('role=delegate')).rows('ledgers')).toEqual(one);
      expect((await list('role=buyer')).rows('ledgers')).toEqual([]);
    }
    for (const name of ['revoked', 'stranger']) {
      expect((await done(base, 'GET', '/v1/ledgers', { headers: callers[name] ?? {} })).rows('ledgers')).toEqual([]);
    }
  });
});

test('an organization delegate works on the root, and not on the organization’s orders', async () => {
  const owner = await newParty(base, { keyed: false });
  const [ops, auditor] = [await newParty(base, { keyed: false }), await newParty(base, { keyed: false })];
  const { organizationId: organization_id, frlLedgerId: frl } = await newOrganization(base, owner);
  const trade = await done(base, 'POST', '/v1/ledgers', {
    headers: owner.bearer,
    body: { supplier_svc_id: order.buyer.svcId },
  });
  for (const [delegate, role] of [
    [ops, 'OPS'],
    [auditor, 'AUDITOR'],
  ] as const) {
    await grant('organization', { organization_id, delegate_actor_id: delegate.actorId, role, permissions: {} }, owner);
    expect((await rest(base, 'GET', `/v1/organizations/${organization_id}`, { headers: delegate.bearer })).status).toBe(
      200,
    );
    expect((await rest(base, 'GET', `/v1/ledgers/${frl}/events`, { headers: delegate.bearer })).status).toBe(200);
    expectRefused(
      await rest(base, 'GET', `/v1/ledgers/${trade.text('id')}`, { headers: delegate.bearer }),
      404,
      'not_found',
    );
    const members = await done(base, 'GET', `/v1/delegation/organization?organization_id=${organization_id}`, {
      headers: delegate.bearer,
    });
    expect(members.body.organization_id).toBe(organization_id);
    const enrich = { headers: delegate.bearer, body: { trade_name: 'Mine' } };
    expectRefused(
      await rest(base, 'PATCH', `/v1/organizations/${organization_id}/enrich`, enrich),
      403,
      'permission_denied',
    );
  }
  const master = { ledger_id: frl, business_ref: 'R', scope: 'PROCESS' };
  expect((await rest(base, 'POST', '/v1/traceledger/master', { headers: ops.bearer, body: master })).status).toBe(200);
  expectRefused(
    await rest(base, 'POST', '/v1/traceledger/master', { headers: auditor.bearer, body: master }),
    403,
    'permission_denied',
  );
  expectRefused(
    await rest(base, 'PATCH', `/v1/ledgers/${frl}/close`, { headers: ops.bearer }),
    403,
    'permission_denied',
  );
});

test('after the answer to a revocation no append of the delegate lands, while 40 are in flight', async () => {
  const delegate = await newParty(base, { keyed: false });
  const ids = { ledger_id: order.ledgerId, delegate_actor_id: delegate.actorId };
  await grant('ledger', { ...ids, role: 'OPS' });
  let over = false;
  const late: number[] = [];
  const load = Array.from({ length: 40 }, async (_, lane) => {
    for (let n = 0; n < 4; n += 1) {
      const begunAfter = over;
      const body = { event_type: 'RACE', payload: { lane, n } };
      const answer = await rest(base, 'POST', `/v1/traceledger/master/${sibling}/events`, {
        headers: delegate.bearer,
        body,
      });
      if (answer.status === 200 && begunAfter) late.push(lane);
      if (answer.status !== 200) expect(['not_found']).toContain(answer.code);
    }
  });
  await new Promise((resolve) => setTimeout(resolve, 30));
  const end = await done(base, 'PATCH', '/v1/delegation/ledger', { headers: order.buyer.bearer, body: ids });
  over = true;
  await Promise.all(load);
  expect(late).toEqual([]);
  const events = (
    await done(base, 'GET', `/v1/ledgers/${order.ledgerId}/events`, { headers: order.buyer.bearer })
  ).rows('events');
  const revoked = events.findIndex((event) => (event.payload as Fields).revoked_at === end.text('revoked_at'));
  expect(revoked).toBeGreaterThan(0);
  expect(events.slice(revoked).filter((event) => event.event_type === 'RACE')).toEqual([]);
});
