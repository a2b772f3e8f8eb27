import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { historyOf, storedHistory, tracked } from '../support/access-events.ts';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { newOrganization } from '../support/organizations.ts';
import { append, entityRequest, newDevice, newMaster, newOrder, newParty } from '../support/parties.ts';
import { done, expectRefused, type Fields, rest } from '../support/parties-rest.ts';
import { runNode, testDir } from '../support/running-node.ts';
import { embeddedTest, untilKnownElsewhere } from '../support/several-nodes.ts';

const { base, order, master } = await nodeWithMaster({ keyed: false });

const newStranger = () => newParty(base, { keyed: false });
const short = (events: readonly Fields[]) =>
  events.map((event) => [event.method, event.response_status, event.ledger_id]);

describe('refused calls', () => {
  test('leave no record without a caller or with a bad key', async () => {
    const before = await historyOf(base, order.buyer);
    const { apiKey } = order.buyer;
    const forged = `${apiKey.slice(0, -1)}${apiKey.endsWith('a') ? 'b' : 'a'}`;
    const bad: Record<string, string>[] = [{}, { authorization: `Bearer ${forged}` }, { authorization: apiKey }];
    for (const headers of bad) {
      const answer = await rest(base, 'GET', `/v1/ledgers/${order.ledgerId}`, { headers });
      expect(answer.status).toBe(401);
    }
    expect(await historyOf(base, order.buyer)).toEqual(before);
  });

  test.each([
    ['an unknown ledger', 404, 'GET', () => '/v1/ledgers/0199dddd-0000-7000-8000-00000000000f', undefined],
    ['a bad query', 400, 'GET', () => `/v1/ledgers/${order.ledgerId}/events?limit=0`, undefined],
    ['a query that cannot be read', 400, 'GET', () => `/v1/ledgers/${order.ledgerId}/events?limit=abc`, undefined],
    [
      'a bad query beside the ledger',
      400,
      'GET',
      () => `/v1/traceledger/master?limit=abc&ledger_id=${order.ledgerId}`,
      undefined,
    ],
    [
      'signing headers of who has no key',
      401,
      'PATCH',
      () => `/v1/ledgers/${order.ledgerId}/close`,
      { 'x-actor-sig': 'AA==' },
    ],
  ])('with %s are recorded as %i', async (_, status, method, path, extra) => {
    const { answer, requestId } = await tracked(base, method, path(), { headers: { ...order.buyer.bearer, ...extra } });
    expect(answer.status).toBe(status);
    const [event] = await historyOf(base, order.buyer);
    const named = status === 404 ? '0199dddd-0000-7000-8000-00000000000f' : order.ledgerId;
    expect(event).toMatchObject({ method, response_status: status, ledger_id: named, request_id: requestId });
  });

  test('of a reader (403) and a party (409) are recorded under the ledger', async () => {
    const own = await newOrder(base, { keyed: false });
    const ofOwn = await newMaster(own);
    const reader = await newStranger();
    const grant = { ledger_id: own.ledgerId, delegate_actor_id: reader.actorId, role: 'AUDITOR' };
    await done(base, 'POST', '/v1/delegation/ledger', own.buyer, grant);
    expectRefused(await append(ofOwn, reader, 'A', {}), 403, 'permission_denied');
    expect(short(await historyOf(base, reader))).toEqual([['POST', 403, own.ledgerId]]);
    await done(base, 'PATCH', `/v1/traceledger/master/${ofOwn.uuid}/close`, own.buyer);
    expectRefused(await append(ofOwn, own.supplier, 'A', {}), 409, 'master_closed');
    expect(short(await historyOf(base, own.supplier))[0]).toEqual(['POST', 409, own.ledgerId]);
  });

  test('do not show a stranger whether a master or an organization exists', async () => {
    const stranger = await newStranger();
    const { organizationId } = await newOrganization(base, order.buyer);
    const pairs = [
      [master.uuid, randomUUID(), (id: string) => rest(base, 'GET', `/v1/traceledger/master/${id}`, stranger)],
      [master.uuid, randomUUID(), (id: string) => append({ ...master, uuid: id }, stranger, 'GENESIS', {})],
      [organizationId, randomUUID(), (id: string) => rest(base, 'GET', `/v1/organizations/${id}`, stranger)],
      [order.buyer.actorId, randomUUID(), (id: string) => rest(base, 'GET', `/v1/organizations/${id}`, stranger)],
    ] as const;
    for (const [there, nowhere, call] of pairs) {
      const first = await call(there);
      const second = await call(nowhere);
      expect(first.status).toBe(second.status);
      const [latest, before] = await historyOf(base, stranger);
      expect(latest).toMatchObject({ ledger_id: null, response_status: first.status });
      expect(before).toMatchObject({ ledger_id: null, response_status: first.status });
    }
  });

  test('name the ledger of an expired grant, and not that of a revoked one', async () => {
    const holder = await newStranger();
    const path = `/v1/traceledger/master/${master.uuid}`;
    const grant = async (expiresAt: string) =>
      done(base, 'POST', `${path}/access`, order.buyer, {
        actor_id: holder.actorId,
        access: 'read',
        expires_at: expiresAt,
      });
    const soon = new Date(Date.now() + 400);
    await grant(soon.toISOString());
    await done(base, 'GET', path, holder);
    await expect.poll(async () => (await rest(base, 'GET', path, holder)).code).toBe('access_expired');
    const link = (await grant(new Date(Date.now() + 60_000).toISOString())).text('link_id');
    await done(base, 'DELETE', `${path}/access/${link}`, order.buyer);
    expectRefused(await rest(base, 'GET', path, holder), 404, 'not_found');
    const events = short(await historyOf(base, holder));
    expect(events[0]).toEqual(['GET', 404, null]);
    expect(events[1]).toEqual(['GET', 403, order.ledgerId]);
    expect(events.at(-1)).toEqual(['GET', 200, order.ledgerId]);
  });
});

describe('reading a history', () => {
  test('returns each answered call once, newest first, in pages, by ledger and in either order', async () => {
    const party = await newStranger();
    const ledgers = [randomUUID(), randomUUID()];
    for (let at = 0; at < 7; at++)
      await rest(base, 'GET', `/v1/ledgers/${ledgers[at % 2]}`, {
        headers: { ...party.bearer, 'x-request-id': `r${at}` },
      });
    const ids = async (query: string) => {
      await untilKnownElsewhere('access history');
      const page = await done(base, 'GET', `/v1/audit/access${query}`, party);
      return page.rows('access_events').map((event) => event.request_id);
    };
    expect(await ids('')).toEqual(['r6', 'r5', 'r4', 'r3', 'r2', 'r1', 'r0']);
    expect(await ids('?order=asc&limit=3')).toEqual(['r0', 'r1', 'r2']);
    expect(await ids('?order=desc&limit=2&offset=3')).toEqual(['r3', 'r2']);
    expect(await ids(`?ledger_id=${ledgers[1]}`)).toEqual(['r5', 'r3', 'r1']);
    // Reading the audit of a ledger names it.
    expect((await ids(`?ledger_id=${ledgers[1]}`)).slice(1)).toEqual(['r5', 'r3', 'r1']);
    expect(await ids(`?ledger_id=${randomUUID()}`)).toEqual([]);
    expect(await ids('?offset=100000')).toEqual([]);
  });

  test('shows no calls of others, not even on an own ledger', async () => {
    const [mine, theirs] = [await newOrder(base, { keyed: false }), await newStranger()];
    await rest(base, 'GET', `/v1/ledgers/${mine.ledgerId}`, theirs);
    await done(base, 'GET', `/v1/ledgers/${mine.ledgerId}`, mine.supplier);
    const query = `&ledger_id=${mine.ledgerId}`;
    expect(short(await historyOf(base, mine.buyer, query))).toEqual([['POST', 200, mine.ledgerId]]);
    expect(short(await historyOf(base, theirs, query))).toEqual([['GET', 404, mine.ledgerId]]);
    expect(short(await historyOf(base, mine.supplier, query))).toEqual([['GET', 200, mine.ledgerId]]);
    const otherWorld = { bearer: mine.buyer.production.bearer };
    expect(await historyOf(base, otherWorld)).toEqual([]);
  });

  test('needs a Bearer key and refuses the header of an entity', async () => {
    const device = await newDevice(base);
    expectRefused(await rest(base, 'GET', '/v1/audit/access'), 401, 'unauthenticated');
    const answer = await rest(base, 'GET', '/v1/audit/access', { headers: device.headers });
    expectRefused(answer, 401, 'unauthenticated');
  });

  test('shows 300 records of 300 concurrent calls, and one for each retry', async () => {
    const own = await newOrder(base, { keyed: false });
    const ofOwn = await newMaster(own);
    const headers = { 'idempotency-key': 'once' };
    await Promise.all(Array.from({ length: 300 }, (_, at) => append(ofOwn, own.buyer, 'A', { at })));
    for (let retry = 0; retry < 5; retry++)
      expect((await append(ofOwn, own.buyer, 'B', {}, { headers })).status).toBe(200);
    const events = await historyOf(base, own.buyer, `&ledger_id=${own.ledgerId}`);
    expect(events.filter(({ path }) => path === `/v1/traceledger/master/${ofOwn.uuid}/events`)).toHaveLength(305);
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    const times = events.map(({ at }) => String(at));
    expect(times).toEqual(times.toSorted().reverse());
  });
});

describe('across the life of a node', () => {
  test('a restart keeps every record, also those of the last moment', async () => {
    const dataDir = testDir();
    const first = await runNode({ dataDir });
    const party = await newParty(first.base, { keyed: false });
    for (let at = 0; at < 40; at++) await rest(first.base, 'GET', `/v1/ledgers/${randomUUID()}`, party);
    const before = await historyOf(first.base, party);
    await rest(first.base, 'GET', `/v1/ledgers/${order.ledgerId}`, party);
    await first.stop();
    await using second = await runNode({ dataDir });
    const after = await historyOf(second.base, party);
    expect(after.slice(1)).toEqual(before);
    expect(after[0]).toMatchObject({ ledger_id: order.ledgerId, response_status: 404 });
    expect(before).toHaveLength(40);
  });
});

describe('an entity that must sign', () => {
  embeddedTest('has no unsigned call in its history', async () => {
    await using own = await runNode();
    const device = await newDevice(own.base, { keyed: true });
    const unknown = randomUUID();
    const anybody = { headers: device.headers };
    const body = { event_type: 'A', payload: {} };
    const path = `/v1/traceledger/master/${unknown}`;
    expect((await rest(own.base, 'GET', path, anybody)).status).toBe(401);
    expect((await rest(own.base, 'POST', `${path}/events`, { ...anybody, body })).status).toBe(401);
    const unread = { ...anybody, body: { ledger_id: unknown, mistyped: 1 } };
    const guessed = { ...unread, headers: { ...device.headers, 'x-actor-sig': `${'A'.repeat(86)}==` } };
    for (const to of [`${path}/events`, '/v1/traceledger/master']) {
      // Without a signature the body is not read.
      expect((await rest(own.base, 'POST', to, unread)).status).toBe(401);
      expect((await rest(own.base, 'POST', to, guessed)).status).toBe(400);
    }
    const other = { ledger_id: unknown, business_ref: 'R', scope: 'ORDER' };
    expect((await rest(own.base, 'POST', '/v1/traceledger/master', { ...anybody, body: other })).status).toBe(401);
    expect((await rest(own.base, 'GET', `/v1/ledgers/${unknown}/events?limit=abc`, anybody)).status).toBe(401);
    const signed = entityRequest(device, 'GET', path, '');
    expect((await rest(own.base, 'GET', path, { headers: signed })).status).toBe(404);
    await own.stop();
    const events = await storedHistory(own.dataDir, device.actorId);
    expect(events.map(({ method, responseStatus, path }) => [method, responseStatus, path])).toEqual([
      ['GET', 404, path],
    ]);
  });

  embeddedTest('has its refused signed calls in its history, however little of them was read', async () => {
    await using own = await runNode();
    const device = await newDevice(own.base, { keyed: true });
    const ledgerId = randomUUID();
    const ledger = `/v1/ledgers/${ledgerId}`;
    const calls: readonly (readonly [method: string, path: string, query: string, body: string])[] = [
      ['GET', `${ledger}/events`, '?limit=abc', ''],
      ['PATCH', `/v1/engagements/${ledgerId}/close`, '', '{"x":1}'],
      ['PATCH', `/v1/engagements/${ledgerId}/close`, '', '{'],
      ['GET', `${ledger}/events`, '?limit=1', ''],
    ];
    for (const [method, path, query, text] of calls) {
      const body = text === '' ? {} : { body: text };
      const signed = entityRequest(device, method, path + query, text);
      const forged = { ...signed, 'x-timestamp': new Date(Date.now() + 1000).toISOString() };
      expect((await rest(own.base, method, path + query, { headers: forged, ...body })).status).toBe(401);
      const { status } = await rest(own.base, method, path + query, { headers: signed, ...body });
      expect(status).toBe(query === '?limit=1' ? 404 : 400);
    }
    await own.stop();
    const events = await storedHistory(own.dataDir, device.actorId);
    expect(events.map((one) => [one.method, one.path, one.responseStatus, one.ledgerId])).toEqual(
      calls.map(([method, path, query]) => [method, path, query === '?limit=1' ? 404 : 400, ledgerId]),
    );
  });
});
