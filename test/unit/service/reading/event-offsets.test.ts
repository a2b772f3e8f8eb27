import { describe, expect, test } from 'vitest';
import { names } from '../../../../src/domain/event/projection.ts';
import type { EventSource } from '../../../../src/service/reading/event-page.ts';
import { checkEventQuery } from '../../../../src/service/reading/event-query.ts';
import { append, createMaster, ledgerId, masterId, openLedger, siblingId, uuid } from '../../../support/commands.ts';
import { pageOf, storeOf, walkOf } from '../../../support/event-lists.ts';
import { chainOf, storeWith } from '../../../support/world.ts';

const unseenId = uuid(0xcc);
const masters = [masterId, siblingId, unseenId];
/** Of every thirteen events eleven are of the first master, one is of each other. */
const masterOf = (n: number) => masters[Math.max(0, (n % 13) - 10)] ?? masterId;
const chain = chainOf(
  openLedger(),
  ...masters.map((id) => createMaster({ masterId: id })),
  ...Array.from({ length: 13_000 }, (_, n) =>
    append({ masterId: masterOf(n), eventType: n % 2 === 0 ? 'EVEN' : 'ODD', payload: `{"n":${n}}` }),
  ),
);
const store = await storeOf(chain);

const ofMasters = (ids: readonly string[]) => chain.events.filter(({ master }) => ids.includes(master?.id ?? ''));
const lists: readonly (readonly [string, EventSource, typeof chain.events])[] = [
  ['ledger', { kind: 'ledger', ledgerId, scopes: null }, chain.events],
  ['master', { kind: 'master', ledgerId, scopes: [names.masterEvents(masterId)] }, ofMasters([masterId])],
  [
    'segment',
    { kind: 'segment', ledgerId, scopes: [names.ownEvents(ledgerId), ...masters.slice(0, 2).map(names.masterEvents)] },
    chain.events.filter(({ master }) => master?.id !== unseenId),
  ],
];

describe.each(lists)('an offset into the events of a %s', (_, source, all) => {
  describe.each(['asc', 'desc'])('%s', (order) => {
    const inOrder = order === 'asc' ? all : all.toReversed();
    const seqs = inOrder.map(({ seq }) => seq);

    test('counts beyond ten thousand, and the cursor leads on from there', async () => {
      for (const offset of [1, 9_990, 10_000, 10_001, seqs.length - 21, seqs.length - 1, seqs.length, 100_000]) {
        const page = await pageOf(store, source, { order, offset, limit: 20 });
        const listed = page.events.map(({ seq }) => seq);
        expect([offset, listed, page.issues]).toEqual([offset, seqs.slice(offset, offset + 20), []]);
        if (page.nextCursor === null) expect(seqs.length).toBeLessThanOrEqual(offset + 20);
        else {
          const next = await pageOf(store, source, { order, limit: 20, cursor: page.nextCursor });
          expect(next.events.map(({ seq }) => seq)).toEqual(seqs.slice(offset + 20, offset + 40));
        }
      }
    });

    test('counts from where times and seqs begin', async () => {
      const from = all.find(({ seq }) => seq >= 500)?.seq ?? 0;
      const page = await pageOf(store, source, { order, offset: 10_100, limit: 3, fromSeq: BigInt(from) });
      const bounded = seqs.filter((seq) => seq >= from);
      expect(page.events.map(({ seq }) => seq)).toEqual(bounded.slice(10_100, 10_103));
    });

    test('reads no event that it skips', async () => {
      let read = 0;
      const counted = storeWith(store, {
        read: async (...place) => {
          const entries = await store.read(...place);
          read += entries.length;
          return entries;
        },
        readScope: async (...place) => {
          const page = await store.readScope(...place);
          read += page.entries.length;
          return page;
        },
      });
      await pageOf(counted, source, { order, offset: 10_500, limit: 2 });
      expect(read).toBeLessThan(20);
    });

    test('is kept by the cursors of a filtered list', async () => {
      const odd = inOrder.filter(({ eventType }) => eventType === 'ODD').map(({ seq }) => seq);
      const offset = 5_200;
      const walk = await walkOf(store, source, { order, offset, eventType: 'ODD', limit: 100 });
      expect(walk.pages[0]?.events).toEqual([]);
      expect(walk.seqs).toEqual(odd.slice(offset));
    });
  });
});

test('a cursor of the form that knew no skip is taken, and one that skips more than an offset may is not', () => {
  const cursor = (text: string) => Buffer.from(text).toString('base64url');
  expect(checkEventQuery({ cursor: cursor('a12') })).toMatchObject({ startSeq: 12, offset: 0 });
  const descending = checkEventQuery({ cursor: cursor('d12+100000'), order: 'desc' });
  expect(descending).toMatchObject({ startSeq: 12, offset: 100_000 });
  const refused = expect.objectContaining({ code: 'invalid_argument' });
  for (const text of ['a12+', 'a12+0', 'a12+01', 'a12+100001', 'a12-5', 'a12+1 ', 'd12+1'])
    expect(() => checkEventQuery({ cursor: cursor(text) })).toThrow(refused);
});
