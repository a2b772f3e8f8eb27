import { describe, expect, test } from 'vitest';
import { type LiveEvents, liveEvents } from '../support/live-events.ts';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import {
  append,
  closeOf,
  entityRequest,
  eventsOf,
  newDevice,
  newMaster,
  newParty,
  otherOrder,
  type Party,
} from '../support/parties.ts';
import { done, type Fields, rest } from '../support/parties-rest.ts';
import { oneNodeTest, untilKnownElsewhere } from '../support/several-nodes.ts';

const { node, base, order } = await nodeWithOrder();

const followLedger = (ledgerId: string, by: Party, query = '', headers = {}): Promise<LiveEvents> =>
  liveEvents(base, `/v1/ledgers/${ledgerId}/events/follow?${query}`, { ...by.bearer, ...headers });
const followMaster = (uuid: string, by: Party, query = '', headers = {}): Promise<LiveEvents> =>
  liveEvents(base, `/v1/traceledger/master/${uuid}/events/follow?${query}`, { ...by.bearer, ...headers });
const eventIn = (data: Fields) => data.event as Fields;
const seqsOf = (events: readonly { event: string; data: Fields }[]) =>
  events.filter(({ event }) => event === 'event').map(({ data }) => eventIn(data).seq);

/** Grants access to a master. Returns the id of the link. */
async function grantTo(by: Party, uuid: string, delegate: Pick<Party, 'actorId'>, more: Fields = {}): Promise<string> {
  const body = { actor_id: delegate.actorId, access: 'read', ...more };
  const made = await done(base, 'POST', `/v1/traceledger/master/${uuid}/access`, by, body);
  return made.text('link_id');
}

describe('a party that follows a ledger', () => {
  test('gets the past, caught_up with the head, and each new event as a list shows it', async () => {
    const own = await otherOrder(order);
    const master = await newMaster(own);
    await append(master, own.buyer, 'PACKED', { n: 1 });
    await using stream = await followLedger(own.ledgerId, own.supplier, 'after_seq=-1');
    expect(stream.status).toBe(200);
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(stream.headers.get('content-encoding')).toBeNull();
    const past = await stream.through('caught_up');
    const listed = await eventsOf(base, own.buyer, own.ledgerId);
    expect(past.slice(0, -1).map(({ data }) => eventIn(data))).toEqual(listed);
    for (const { id, data } of past.slice(0, -1)) {
      expect(id).toBe(String(eventIn(data).seq));
      expect(data.integrity).toEqual({ verified: true, issues: [] });
    }
    expect(past.at(-1)).toMatchObject({
      id: String(listed.at(-1)?.seq),
      data: { head: { seq: listed.at(-1)?.seq, hash: listed.at(-1)?.hash, master_seq: null } },
    });
    await append(master, own.buyer, 'SHIPPED', { n: 2 });
    const next = await stream.next();
    const [newest] = (await eventsOf(base, own.buyer, own.ledgerId)).slice(-1);
    expect(next).toEqual({
      id: String(newest?.seq),
      event: 'event',
      data: { event: newest, integrity: { verified: true, issues: [] } },
    });
    expect(stream.raw()).toMatch(/^retry: \d+\n:/);
  });

  test('gets only new events without after_seq, and resumes behind Last-Event-ID', async () => {
    const own = await otherOrder(order);
    const master = await newMaster(own);
    let at: string | null;
    {
      await using stream = await followLedger(own.ledgerId, own.supplier);
      expect((await stream.next())?.event).toBe('caught_up');
      await append(master, own.buyer, 'PACKED', { n: 1 });
      at = (await stream.next())?.id ?? null;
    }
    await append(master, own.buyer, 'SHIPPED', { n: 2 });
    await append(master, own.buyer, 'ARRIVED', { n: 3 });
    await using stream = await followLedger(own.ledgerId, own.supplier, 'after_seq=0', { 'last-event-id': at });
    const events = await stream.through('caught_up');
    expect(seqsOf(events)).toEqual([Number(at) + 1, Number(at) + 2]);
  });

  test('is refused as a list refuses it', async () => {
    const stranger = await newParty(base);
    const path = `/v1/ledgers/${order.ledgerId}/events/follow`;
    const refused = async (query: string, headers: Record<string, string>) => {
      const { status, code, body } = await rest(base, 'GET', `${path}?${query}`, { headers });
      const details = (body.error as Fields).details as Fields | undefined;
      return [status, code, details?.field ?? details?.header];
    };
    expect(await refused('', stranger.bearer)).toEqual([404, 'not_found', undefined]);
    expect(await refused('', {})).toEqual([401, 'unauthenticated', 'Authorization']);
    const { bearer } = order.buyer;
    expect(await refused('after_seq=-2', bearer)).toEqual([400, 'invalid_argument', 'after_seq']);
    expect(await refused('after_seq=1000', bearer)).toEqual([400, 'invalid_argument', 'after_seq']);
    expect(await refused('event_type=1', bearer)).toEqual([400, 'invalid_argument', 'event_type']);
    expect(await refused('verify=all', bearer)).toEqual([400, 'invalid_argument', 'verify']);
    const id = { ...bearer, 'last-event-id': 'x' };
    expect(await refused('', id)).toEqual([400, 'invalid_argument', 'Last-Event-ID']);
  });

  test('gets what the filters select, and verified signatures', async () => {
    const own = await otherOrder(order);
    const master = await newMaster(own);
    for (const type of ['ODD', 'EVEN', 'ODD']) await append(master, own.buyer, type, { type });
    await using stream = await followLedger(own.ledgerId, own.buyer, 'after_seq=-1&event_type=ODD&verify=signatures');
    expect(seqsOf(await stream.through('caught_up'))).toEqual([3, 5]);
    await append(master, own.buyer, 'EVEN', { type: 'EVEN' });
    await append(master, own.buyer, 'ODD', { type: 'ODD' });
    expect(seqsOf([...(await stream.through('event'))])).toEqual([7]);
    const listed = await eventsOf(base, own.buyer, own.ledgerId);
    const third = listed[3];
    await using one = await followLedger(own.ledgerId, own.buyer, `after_seq=-1&event_id=${third?.id}`);
    expect(seqsOf(await one.ended())).toEqual([3]);
    await using until = await followLedger(own.ledgerId, own.buyer, `after_seq=-1&to=${third?.created_at}`);
    expect(seqsOf(await until.ended())).toContain(3);
    await using from = await followLedger(own.ledgerId, own.buyer, `after_seq=-1&from=${third?.created_at}`);
    const later = listed.filter(({ created_at }) => String(created_at) >= String(third?.created_at));
    expect(seqsOf(await from.through('caught_up'))).toEqual(later.map(({ seq }) => seq));
    await using ofMaster = await followMaster(master.uuid, own.buyer, 'after_master_seq=-1&event_type=EVEN');
    expect(seqsOf(await ofMaster.through('caught_up'))).toEqual([4, 6]);
  });

  test('gets LEDGER_CLOSED, and the stream ends well behind it; there is nothing to come back for', async () => {
    const own = await otherOrder(order);
    await using stream = await followLedger(own.ledgerId, own.buyer);
    await stream.through('caught_up');
    const { path, headers } = closeOf(own, own.buyer);
    await done(base, 'PATCH', path, { headers });
    const events = await stream.ended();
    expect(events.map(({ event }) => event)).toEqual(['caught_up', 'event']);
    expect(eventIn(events[1]?.data ?? {}).event_type).toBe('LEDGER_CLOSED');
    await using again = await followLedger(own.ledgerId, own.buyer, '', { 'last-event-id': events[1]?.id ?? '' });
    expect([again.status, await again.ended()]).toEqual([204, []]);
    await using past = await followLedger(own.ledgerId, own.buyer, 'after_seq=-1');
    expect((await past.ended()).map(({ event }) => event)).toEqual(['event', 'event', 'event', 'caught_up']);
  });

  test('leaves one record in its access history when it begins', async () => {
    const own = await otherOrder(order);
    await using stream = await followLedger(own.ledgerId, own.buyer);
    await stream.through('caught_up');
    await untilKnownElsewhere('access history');
    const records = async () =>
      (await done(base, 'GET', `/v1/audit/access?ledger_id=${own.ledgerId}`, own.buyer))
        .rows('access_events')
        .filter(({ path }) => String(path).endsWith('/follow'));
    expect(await records()).toMatchObject([{ method: 'GET', response_status: 200 }]);
    await stream[Symbol.asyncDispose]();
    expect(await records()).toHaveLength(1);
  });
});

describe('a party that follows a master', () => {
  test('gets its events alone, placed by master_seq, until it or its ledger is closed', async () => {
    const own = await otherOrder(order);
    const [master, other] = [await newMaster(own), await newMaster(own)];
    await append(master, own.buyer, 'PACKED', { n: 1 });
    await append(other, own.buyer, 'PACKED', { n: 1 });
    await using stream = await followMaster(master.uuid, own.supplier, 'after_master_seq=0');
    const past = await stream.through('caught_up');
    expect(past.map(({ id, event }) => [id, event])).toEqual([
      ['1', 'event'],
      ['1', 'caught_up'],
    ]);
    expect(past[1]?.data.head).toMatchObject({ seq: 4, master_seq: 1 });
    await append(other, own.buyer, 'SHIPPED', { n: 2 });
    await append(master, own.buyer, 'SHIPPED', { n: 2 });
    expect(await stream.next()).toMatchObject({ id: '2', data: { integrity: { verified: true } } });
    const { path, headers } = closeOf(own, own.buyer);
    await done(base, 'PATCH', path, { headers });
    expect((await stream.ended()).map(({ event }) => event)).toEqual(['event', 'caught_up', 'event']);
    const refused = await rest(
      base,
      'GET',
      `/v1/traceledger/master/${master.uuid}/events/follow?after_master_seq=9`,
      own.buyer,
    );
    expect([refused.code, (refused.body.error as Fields).details]).toMatchObject([
      'invalid_argument',
      { field: 'after_master_seq' },
    ]);
  });
});

describe('a delegate', () => {
  test('of one master gets the events of the ledger itself and of that master', async () => {
    const own = await otherOrder(order);
    const [master, other] = [await newMaster(own), await newMaster(own)];
    const delegate = await newParty(base, { keyed: false });
    await grantTo(own.buyer, master.uuid, delegate);
    await append(other, own.buyer, 'PACKED', { n: 1 });
    await append(master, own.buyer, 'PACKED', { n: 1 });
    await using stream = await followLedger(own.ledgerId, delegate, 'after_seq=-1');
    expect(seqsOf(await stream.through('caught_up'))).toEqual([0, 1, 2, 4, 6]);
    await append(other, own.buyer, 'SHIPPED', { n: 1 });
    await append(master, own.buyer, 'SHIPPED', { n: 1 });
    expect(eventIn((await stream.next())?.data ?? {}).seq).toBe(8);
  });

  test('is ended within a second of the revocation of its grant, and gets nothing behind it', async () => {
    const own = await otherOrder(order);
    const master = await newMaster(own);
    const delegate = await newParty(base, { keyed: false });
    const link = await grantTo(own.buyer, master.uuid, delegate);
    await using whole = await followLedger(own.ledgerId, delegate);
    await using stream = await followMaster(master.uuid, delegate);
    await whole.through('caught_up');
    await stream.through('caught_up');
    await append(master, own.buyer, 'PACKED', { n: 1 });
    await done(base, 'DELETE', `/v1/traceledger/master/${master.uuid}/access/${link}`, own.buyer);
    await append(master, own.buyer, 'SHIPPED', { n: 2 });
    for (const ended of [await whole.ended(), await stream.ended()]) {
      expect(ended.map(({ event }) => event)).toEqual(['caught_up', 'event', 'error']);
      expect(ended[2]?.data).toMatchObject({ error: { code: 'permission_denied' } });
    }
  });

  test('gets nothing that was written behind its revocation, whatever else is written meanwhile', async () => {
    const own = await otherOrder(order);
    const master = await newMaster(own);
    const delegate = await newParty(base, { keyed: false });
    for (let race = 0; race < 20; race += 1) {
      const link = await grantTo(own.buyer, master.uuid, delegate);
      await using stream = await followMaster(master.uuid, delegate);
      await stream.through('caught_up');
      const writing = Array.from({ length: 6 }, (_, n) => append(master, own.buyer, 'RACED', { race, n }));
      const path = `/v1/traceledger/master/${master.uuid}/access/${link}`;
      const revoking = done(base, 'DELETE', path, own.buyer);
      writing.push(...Array.from({ length: 6 }, (_, n) => append(master, own.supplier, 'RACED', { race, n })));
      await Promise.all([revoking, ...writing]);
      const sent = await stream.ended();
      expect(sent.at(-1)).toMatchObject({ event: 'error', data: { error: { code: 'permission_denied' } } });
      const events = await eventsOf(base, own.buyer, own.ledgerId);
      const revokedSeq = Number(events.findLast(({ event_type }) => event_type === 'MASTER_DELEGATION_REVOKED')?.seq);
      for (const seq of seqsOf(sent)) expect(Number(seq)).toBeLessThan(revokedSeq);
    }
  });

  test('is ended within a second of the expiry of its grant', async () => {
    const own = await otherOrder(order);
    const master = await newMaster(own);
    const delegate = await newParty(base, { keyed: false });
    const expiresAt = new Date(Date.now() + 1_500).toISOString();
    await grantTo(own.buyer, master.uuid, delegate, { expires_at: expiresAt });
    await using stream = await followMaster(master.uuid, delegate);
    const ended = await stream.ended();
    expect(Date.now() - Date.parse(expiresAt)).toBeLessThan(1_000);
    expect(ended.at(-1)).toMatchObject({ event: 'error', data: { error: { code: 'access_expired' } } });
  });
});

test('a stream ends within a second of the revocation of its API key', async () => {
  const own = await otherOrder(order);
  const made = await done(base, 'POST', '/v1/developer/keys', own.buyer, { name: 'short' });
  await using stream = await liveEvents(base, `/v1/ledgers/${own.ledgerId}/events/follow`, {
    authorization: `Bearer ${made.text('api_key')}`,
  });
  await stream.through('caught_up');
  await done(base, 'DELETE', `/v1/developer/keys/${made.text('key_id')}`, own.buyer);
  const revokedMs = Date.now();
  expect((await stream.ended()).at(-1)).toMatchObject({ event: 'error', data: { error: { code: 'invalid_api_key' } } });
  expect(Date.now() - revokedMs).toBeLessThan(1_500);
});

oneNodeTest('the metrics count followers, what was read and encoded, and why streams ended', async () => {
  const metrics = await (await fetch(`${node.opsBase}/metrics`)).text();
  expect(metrics).toMatch(/^svc_followers \d/m);
  for (const name of ['pages_read', 'events_read', 'events_encoded', 'events_sent'])
    expect(metrics).toMatch(new RegExp(`^svc_follow_${name}_total [1-9]`, 'm'));
  for (const reason of ['closed', 'revoked', 'expired', 'credential', 'caller_gone', 'filter_end'])
    expect(metrics).toMatch(new RegExp(`^svc_follow_ended_total{reason="${reason}"} [1-9]`, 'm'));
  expect(metrics).toMatch(/^svc_follow_lag_seconds_count [1-9]/m);
});

test('an entity that identifies itself by signed headers follows what it was granted, until that ends', async () => {
  const own = await otherOrder(order);
  const master = await newMaster(own);
  const device = await newDevice(base, { owner: own.buyer, keyed: true });
  const linkId = await grantTo(own.buyer, master.uuid, device);
  const path = `/v1/traceledger/master/${master.uuid}/events/follow`;
  await using stream = await liveEvents(base, path, entityRequest(device, 'GET', path, ''));
  expect(stream.status).toBe(200);
  await stream.through('caught_up');
  await append(master, own.buyer, 'PACKED', { n: 1 });
  expect(seqsOf(await stream.through('event'))).toEqual([4]);
  await done(base, 'DELETE', `/v1/traceledger/master/${master.uuid}/access/${linkId}`, own.buyer);
  expect((await stream.ended()).at(-1)).toMatchObject({
    event: 'error',
    data: { error: { code: 'permission_denied' } },
  });
});
