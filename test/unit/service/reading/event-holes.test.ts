import { describe, expect, test } from 'vitest';
import { names } from '../../../../src/domain/event/projection.ts';
import type { EventSource } from '../../../../src/service/reading/event-page.ts';
import { append, createMaster, ledgerId, masterId, openLedger, siblingId } from '../../../support/commands.ts';
import { pageOf, storeOf, walkOf } from '../../../support/event-lists.ts';
import { beforeCalls, chainOf, storeWith } from '../../../support/world.ts';

const chain = chainOf(
  openLedger(),
  createMaster({ masterId }),
  createMaster({ masterId: siblingId }),
  ...Array.from({ length: 60 }, (_, n) => append({ masterId: n < 45 ? masterId : siblingId, payload: `{"n":${n}}` })),
);
const whole = await storeOf(chain);
/** Longer than what a page of two reads at once. */
const lost = (seq: number) => seq >= 10 && seq < 40;
const store = storeWith(whole, {
  read: async (id, from, limit) => {
    const rows = await whole.read(id, from, 1_000);
    return rows.filter(({ seq }) => !lost(seq)).slice(0, limit);
  },
  readScope: async (...place) => {
    const { entries } = await whole.readScope(...place);
    const missing = entries.map(({ seq }) => seq).filter(lost);
    return { entries: entries.filter(({ seq }) => !lost(seq)), missing };
  },
});

const lists: readonly EventSource[] = [
  { kind: 'ledger', ledgerId, scopes: null },
  { kind: 'master', ledgerId, scopes: [names.masterEvents(masterId)] },
  { kind: 'segment', ledgerId, scopes: [masterId, siblingId].map(names.masterEvents) },
];

describe.each(lists)('the events of a $kind with a hole', (source) => {
  test.each(['asc', 'desc'])('are read to the end behind it (%s)', async (order) => {
    const listed = chain.events.filter(
      ({ seq, master }) =>
        !lost(seq) && (source.scopes === null || source.scopes.includes(names.masterEvents(master?.id ?? ''))),
    );
    const expected = listed.map(({ seq }) => seq);
    const { seqs, pages } = await walkOf(store, source, { order, limit: 2 });
    expect(seqs).toEqual(order === 'asc' ? expected : expected.toReversed());
    expect(pages.some(({ issues }) => issues.some(({ type }) => type === 'missing_event'))).toBe(true);
  });
});

test('a hole is read across in pieces as large as any', async () => {
  let reads = 0;
  const counting = beforeCalls(store, { read: () => void reads++ });
  const cursor = Buffer.from('d39').toString('base64url');
  const [ledger] = lists as readonly [EventSource];
  expect((await pageOf(counting, ledger, { order: 'desc', cursor, eventType: 'NOPE' })).events).toEqual([]);
  expect(reads).toBeLessThan(6);
});

test.each(lists.slice(1))('what a $kind has lost before the seq asked for is not told of', async (source) => {
  const { events, issues } = await pageOf(store, source, { order: 'desc', fromSeq: 42n });
  expect(events.at(-1)?.seq).toBe(42);
  expect(issues).toEqual([]);
});
