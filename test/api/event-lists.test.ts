import { describe, expect, test } from 'vitest';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { done, type Fields, type RestAnswer, rest, shape } from '../support/parties-rest.ts';

const { base, order } = await nodeWithOrder();

const one = await newMaster(order, order.supplier, 'PO-1');
const two = await newMaster(order, order.buyer, 'PO-2');
for (let n = 0; n < 12; n += 1) {
  await append(n % 3 === 0 ? two : one, order.buyer, n % 2 === 0 ? 'EVEN' : 'ODD', { n });
  await new Promise((resolve) => setTimeout(resolve, 2));
}

const ledger = (query: string): Promise<RestAnswer> =>
  rest(base, 'GET', `/v1/ledgers/${order.ledgerId}/events?${query}`, order.supplier);
const master = (query: string): Promise<RestAnswer> =>
  rest(base, 'GET', `/v1/traceledger/master/${one.uuid}/events?${query}`, order.supplier);
/** Whole lists, as read at the start. */
const ledgerEvents = (await ledger('')).rows('events');
const masterEvents = (await master('')).rows('events');

const seqs = (events: readonly Fields[]) => events.map((event) => event.seq);

describe.each(['ledger', 'master'] as const)('the events of a %s', (kind) => {
  const read = kind === 'ledger' ? ledger : master;
  const all = () => (kind === 'ledger' ? ledgerEvents : masterEvents);
  const list = async (query: string) => {
    const page = await read(query);
    expect([query, page.status, page.body.integrity]).toEqual([query, 200, { verified: true, issues: [] }]);
    expect(page.body.count).toBe(page.rows('events').length);
    return page;
  };

  test('are listed completely, oldest first, each with every field', async () => {
    const page = await list('');
    expect(Object.keys(page.body)).toEqual([
      ...(kind === 'ledger' ? [] : ['master_uuid']),
      'ledger_id',
      'count',
      'integrity',
      'events',
    ]);
    expect(seqs(all())).toEqual(
      kind === 'ledger'
        ? Array.from({ length: 16 }, (_, seq) => seq)
        : seqs(all()).toSorted((a, b) => Number(a) - Number(b)),
    );
    for (const event of all()) {
      expect(event).toEqual({
        id: shape.uuid,
        ledger_id: order.ledgerId,
        seq: expect.any(Number),
        master_id: event.master_id === null ? null : shape.uuid,
        master_seq: event.master_id === null ? null : expect.any(Number),
        event_type: expect.any(String),
        actor_id: event.seq === 0 ? null : shape.uuid,
        actor_type: 'service',
        payload: expect.any(Object),
        hash: shape.hash,
        content_hash: shape.hash,
        caused_by_hash: null,
        actor_sig: event.master_id === null ? null : shape.signature,
        signing_key_id: event.master_id === null ? null : expect.stringMatching(/#key-1$/),
        actor_sig_payload: event.event_type === 'TRACELEDGER_MASTER_CREATED' ? expect.any(Object) : null,
        authority_sig: event.master_id === null ? shape.signature : null,
        authority_key_id: event.master_id === null ? 'svc:authority#key-1' : null,
        created_at: shape.time,
      });
    }
  });

  test.each(['', '&order=desc'])('are listed in pages without gap or doubling%s', async (more) => {
    const expected = more === '' ? all() : all().toReversed();
    for (const limit of [1, 3, expected.length, expected.length + 1]) {
      const found: Fields[] = [];
      let cursor = '';
      for (;;) {
        const page = await list(`limit=${limit}${more}${cursor}`);
        expect(page.rows('events').length).toBeLessThanOrEqual(limit);
        found.push(...page.rows('events'));
        if (page.body.next_cursor === undefined) break;
        expect(page.rows('events')).toHaveLength(limit);
        cursor = `&cursor=${encodeURIComponent(page.text('next_cursor'))}`;
      }
      expect(found).toEqual(expected);
    }
  });

  test('are filtered by type, id, seq and time, also combined', async () => {
    const odd = all().filter((event) => event.event_type === 'ODD');
    expect((await list('event_type=ODD')).rows('events')).toEqual(odd);
    expect((await list('event_type=ODD&limit=2')).rows('events')).toEqual(odd.slice(0, 2));
    expect((await list('event_type=ODD&order=desc&limit=1')).rows('events')).toEqual(odd.slice(-1));
    expect((await list('event_type=NOBODY_WROTE')).body).toMatchObject({ count: 0, events: [] });
    const third = all()[3] ?? {};
    expect((await list(`event_id=${third.id}`)).rows('events')).toEqual([third]);
    expect((await list(`event_id=${third.id}&event_type=NOBODY_WROTE`)).rows('events')).toEqual([]);
    expect((await list(`event_id=${order.ledgerId}`)).rows('events')).toEqual([]);
    expect((await list(`event_id=f0000000-0000-7000-8000-000000000000`)).rows('events')).toEqual([]);
    expect((await list(`from_seq=${third.seq}`)).rows('events')).toEqual(all().slice(3));
    expect((await list(`from_seq=${third.seq}&order=desc`)).rows('events')).toEqual(all().slice(3).toReversed());
    expect((await list('from_seq=1000')).rows('events')).toEqual([]);
    const at = String(third.created_at);
    const inside = all().filter((event) => String(event.created_at) >= at);
    const until = all().filter((event) => String(event.created_at) <= at);
    expect((await list(`from=${at}`)).rows('events')).toEqual(inside);
    expect((await list(`to=${at}`)).rows('events')).toEqual(until);
    const local = encodeURIComponent(at.replace('Z', '+00:00'));
    expect((await list(`from=${local}&to=${local}`)).rows('events')).toContainEqual(third);
    expect((await list('to=2020-01-01T00:00:00Z')).body).toMatchObject({ count: 0, events: [] });
    expect((await list('offset=2&limit=2')).rows('events')).toEqual(all().slice(2, 4));
    expect((await list('offset=2&order=desc')).rows('events')).toEqual(all().toReversed().slice(2));
    expect((await list(`event_type=ODD&offset=1`)).rows('events')).toEqual(odd.slice(1));
    expect((await list('offset=100000')).rows('events')).toEqual([]);
    expect((await list('verify=signatures')).rows('events')).toEqual(all());
    expect((await list('colour=blue')).rows('events')).toEqual(all());
  });
});

test('the list of a ledger includes the events of its masters, and the list of a master no others', () => {
  expect(masterEvents.every((event) => event.master_id === one.uuid)).toBe(true);
  expect(masterEvents.map((event) => event.master_seq)).toEqual(masterEvents.map((_, at) => at));
  expect(ledgerEvents.filter((event) => event.master_id === one.uuid)).toEqual(masterEvents);
});

test.each(['x', '界', '"', '\u0001'])(
  'a page ends before the event that would take its JSON beyond 2 MiB (%j)',
  async (letter) => {
    const small = await newOrder(base);
    const big = await newMaster(small);
    const bytesOf = Buffer.byteLength(JSON.stringify(letter)) - 2;
    const text = letter.repeat(Math.floor(250_000 / bytesOf));
    for (let n = 0; n < 12; n += 1) {
      const answer = await append(big, small.buyer, 'BIG', { n, text });
      expect(answer.status).toBe(200);
    }
    const found: Fields[] = [];
    let cursor = '';
    let pages = 0;
    for (;;) {
      const page = await done(base, 'GET', `/v1/ledgers/${small.ledgerId}/events?${cursor}`, small.buyer);
      expect(Buffer.byteLength(page.raw)).toBeLessThanOrEqual(2 * 1024 * 1024);
      expect(page.body.integrity).toEqual({ verified: true, issues: [] });
      found.push(...page.rows('events'));
      pages += 1;
      if (page.body.next_cursor === undefined) break;
      expect(Buffer.byteLength(page.raw)).toBeGreaterThan(1_700_000);
      cursor = `cursor=${page.text('next_cursor')}`;
    }
    expect(seqs(found)).toEqual(Array.from({ length: 15 }, (_, seq) => seq));
    expect(pages).toBe(2);
  },
);
