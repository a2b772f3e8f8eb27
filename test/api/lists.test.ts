import { expect, test } from 'vitest';
import { nodeForTests } from '../support/node-for-tests.ts';
import { newOrganization } from '../support/organizations.ts';
import { newMaster, newOrder, newParty, otherOrder, type Party } from '../support/parties.ts';
import { done, expectRefused, type Fields, rest, shape } from '../support/parties-rest.ts';

const { base } = await nodeForTests();

const get = (path: string, by: Pick<Party, 'bearer'>, headers: Readonly<Record<string, string>> = {}) =>
  rest(base, 'GET', path, { headers: { ...by.bearer, ...headers } });

const ledgersOf = async (by: Party, query = ''): Promise<Fields[]> =>
  (await done(base, 'GET', `/v1/ledgers?${query}`, by)).rows('ledgers');
const idsOf = async (by: Party, query = '') => (await ledgersOf(by, query)).map(({ id }) => id);

test('a ledger of every type is listed as GET of the ledger shows it', async () => {
  const [one, two] = [await newParty(base), await newParty(base)];
  const { organizationId, frlLedgerId } = await newOrganization(base, one);
  const order = await done(base, 'POST', '/v1/ledgers', one, { supplier_svc_id: two.svcId });
  await done(base, 'POST', '/v1/engagements', one, { counterparty_actor_id: two.actorId, purpose: 'SERVICE' });
  const listed = await ledgersOf(one);
  expect(listed.map(({ ledger_type }) => ledger_type)).toEqual(['FACILITY_ROOT', 'ORDER', 'ENGAGEMENT']);
  for (const ledger of listed) expect((await get(`/v1/ledgers/${ledger.id}`, one)).body).toEqual(ledger);
  expect(listed[0]).toMatchObject({ id: frlLedgerId, supplier_organization_id: organizationId });
  expect(listed[1]).toEqual({
    id: order.text('id'),
    ledger_type: 'ORDER',
    status: 'OPEN',
    buyer_actor_id: one.actorId,
    supplier_actor_id: two.actorId,
    buyer_organization_id: organizationId,
    supplier_organization_id: null,
    created_at: shape.time,
  });
  expect(listed[2]).toMatchObject({ counterparty_actor_id: two.actorId, purpose: 'SERVICE', buyer_actor_id: null });
  expect((await ledgersOf(two))[0]).toEqual(listed[1]);
});

test('ledgers are filtered by counterparty and time, together with the other filters', async () => {
  const [one, two, three] = [await newParty(base), await newParty(base), await newParty(base)];
  const open = async (by: Party, to: Party) =>
    (await done(base, 'POST', '/v1/ledgers', by, { supplier_svc_id: to.svcId })).text('id');
  const ids = [await open(one, two), await open(three, one), await open(one, three), await open(two, one)];
  const of = ({ actorId }: Party) => `counterparty_actor_id=${actorId}`;
  expect(await idsOf(one, of(two))).toEqual([ids[0], ids[3]]);
  expect(await idsOf(one, `${of(three)}&order=desc`)).toEqual([ids[2], ids[1]]);
  expect(await idsOf(one, `${of(three)}&role=buyer`)).toEqual([ids[2]]);
  expect(await idsOf(one, `${of(two)}&ledger_type=ENGAGEMENT`)).toEqual([]);
  expect(await idsOf(one, of(one))).toEqual(ids);
  // Between other parties there is a ledger too: it is nobody else's.
  await open(two, three);
  expect(await idsOf(one, of(await newParty(base)))).toEqual([]);
  expect(await idsOf(one, of(two))).toEqual([ids[0], ids[3]]);
  const times = (await ledgersOf(one)).map(({ created_at }) => String(created_at));
  expect(await idsOf(one, `from=${times[3]}`)).toContain(ids[3]);
  expect(await idsOf(one, `to=${times[0]}`)).toContain(ids[0]);
  expect(await idsOf(one, 'from=2100-01-01T00:00:00Z')).toEqual([]);
  expect(await idsOf(one, 'to=2000-01-01T00:00:00Z')).toEqual([]);
});

test('cursors give each ledger and each master once while others are opened at the front', async () => {
  const order = await newOrder(base);
  const [ledgers, masters] = [[order.ledgerId], [(await newMaster(order)).uuid]];
  for (let n = 0; n < 4; n += 1) {
    ledgers.push((await otherOrder(order)).ledgerId);
    masters.push((await newMaster(order)).uuid);
  }
  const walk = async (path: string, list: string, id: string, atFront: () => Promise<unknown>) => {
    const found: unknown[] = [];
    let cursor: unknown;
    do {
      const page = await get(
        `${path}order=desc&limit=2${cursor === undefined ? '' : `&cursor=${cursor}`}`,
        order.buyer,
      );
      expect(page.status).toBe(200);
      found.push(...page.rows(list).map((row) => row[id]));
      cursor = page.body.next_cursor;
      await atFront();
    } while (cursor !== undefined);
    return found;
  };
  expect(await walk('/v1/ledgers?', 'ledgers', 'id', () => otherOrder(order))).toEqual(ledgers.toReversed());
  const path = `/v1/traceledger/master?ledger_id=${order.ledgerId}&`;
  expect(await walk(path, 'masters', 'uuid', () => newMaster(order))).toEqual(masters.toReversed());
  const asked = await get(`/v1/ledgers?limit=1&cursor=${Buffer.from('a').toString('base64url')}`, order.buyer);
  expect(asked.rows('ledgers').map(({ id }) => id)).toEqual([order.ledgerId]);
  for (const [cursor, more] of [
    [String(asked.body.next_cursor), 'order=desc'],
    ['nonsense', ''],
    ['', ''],
  ])
    expectRefused(await get(`/v1/ledgers?cursor=${cursor}&${more}`, order.buyer), 400, 'invalid_argument');
  expectRefused(await get(`${path}cursor=${asked.body.next_cursor}`, order.buyer), 400, 'invalid_argument');
});

test('a delegate of one master learns of that master alone, whatever it filters by', async () => {
  const order = await newOrder(base);
  const [mine, sibling] = [await newMaster(order, order.buyer, 'MINE'), await newMaster(order, order.buyer, 'OTHER')];
  const delegate = await newParty(base);
  const stranger = await newParty(base);
  await done(base, 'POST', `/v1/traceledger/master/${mine.uuid}/access`, order.buyer, {
    actor_id: delegate.actorId,
    access: 'read',
  });
  const list = `/v1/traceledger/master?ledger_id=${order.ledgerId}`;
  const refs = async (query: string) =>
    (await get(`${list}${query}`, delegate)).rows('masters').map(({ business_ref }) => business_ref);
  expect(await refs('')).toEqual(['MINE']);
  expect(await refs('&business_ref=MINE&scope=ORDER&status=OPEN')).toEqual(['MINE']);
  expect(await refs('&business_ref=OTHER')).toEqual([]);
  // A cursor of a party, at the sibling, is none of the delegate's.
  const first = await get(`${list}&limit=1`, order.buyer);
  expectRefused(await get(`${list}&cursor=${first.body.next_cursor}`, delegate), 400, 'invalid_argument');
  const forged = Buffer.from(`a${mine.uuid}`).toString('base64url');
  expect(await refs(`&cursor=${forged}`)).toEqual([]);
  expect(sibling.uuid > mine.uuid).toBe(true);
  expectRefused(await get(`${list}&business_ref=MINE`, stranger), 404, 'not_found');
  // What the ledger's list shows, GET of the ledger shows to the delegate as well.
  const [listed] = await ledgersOf(delegate, `counterparty_actor_id=${order.supplier.actorId}`);
  expect((await get(`/v1/ledgers/${order.ledgerId}`, delegate)).body).toEqual(listed);
  expect(await ledgersOf(stranger, `counterparty_actor_id=${order.supplier.actorId}`)).toEqual([]);
  const access = await done(base, 'GET', `/v1/traceledger/master/${mine.uuid}/access`, order.buyer);
  await done(
    base,
    'DELETE',
    `/v1/traceledger/master/${mine.uuid}/access/${access.rows('access')[0]?.link_id}`,
    order.buyer,
  );
  expect(await ledgersOf(delegate)).toEqual([]);
});
