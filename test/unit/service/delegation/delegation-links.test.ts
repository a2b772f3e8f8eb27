import { describe, expect, test } from 'vitest';
import { delegatesMax, type Grant } from '../../../../src/domain/event/grant.ts';
import { isoTime } from '../../../../src/domain/values/time.ts';
import { everyLink, heldLinks, linksMax } from '../../../../src/service/delegation/links.ts';
import { boundedLedgers } from '../../../../src/service/walking/bounded-stores.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import type { Cell, LedgerStore, Page } from '../../../../src/store/ledger-store.ts';

const object = { scope: 'ledger', id: 'a ledger', ledgerId: 'a ledger' } as const;
const startMs = Date.parse('2026-11-21T02:00:00.000Z');
const now = isoTime(startMs + 1_000_000_000);
const page = { limit: 1_000, offset: 0, descending: false };

/** A store of links, of which the n-th was granted n ms after the start, and revoked 1 ms later unless `holds`. */
function storeOf(count: number, holds: (index: number) => boolean) {
  const read = { lines: 0 };
  const grant = (index: number): Partial<Grant> => ({
    linkId: String(index),
    delegateActorId: `delegate ${index}`,
    role: 'AUDITOR',
    permissions: '{}',
    access: 'read',
    grantedAt: isoTime(startMs + index),
    expiresAt: null,
  });
  const store = {
    lines: async (_: string, { from, limit, offset = 0, descending = false }: Page) => {
      const [begin, step] = [from === undefined ? (descending ? count - 1 : 0) : Number(from), descending ? -1 : 1];
      const indexes = Array.from({ length: limit }, (_, at) => begin + (offset + at) * step);
      const there = indexes.filter((index) => index >= 0 && index < count);
      read.lines += there.length;
      return there.map((index) => ({ order: String(index), value: JSON.stringify(grant(index)) }));
    },
    cell: async (key: string): Promise<Cell | null> => {
      const index = Number(key.replace(/^link-ended:/, ''));
      return holds(index) ? null : { version: 0, value: JSON.stringify(isoTime(startMs + index + 1)) };
    },
  };
  return { store: boundedLedgers(unboundedWalk(), store as Partial<LedgerStore> as LedgerStore), read };
}

const idsOf = (links: readonly { readonly grant: Grant }[]) => links.map(({ grant }) => Number(grant.linkId));
const range = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + at);

describe('links that hold', () => {
  test('are found however many were granted and revoked before them, and reading ends with the last that can hold', async () => {
    const count = linksMax + 10_000;
    const { store, read } = storeOf(count, (index) => index >= count - delegatesMax);
    expect(idsOf(await heldLinks(store, object, now, page))).toEqual(range(count - delegatesMax, delegatesMax));
    expect(read.lines).toBe(delegatesMax);
    const newest = await heldLinks(store, object, now, { limit: 2, offset: 1, descending: true });
    expect(idsOf(newest)).toEqual([count - 2, count - 3]);
  });

  test('are refused, and no list with some of them left out is given, where more were granted than are looked through', async () => {
    const { store, read } = storeOf(linksMax + 1, (index) => index === 0 || index > linksMax - 5);
    const refused = { code: 'invalid_argument', details: { limit: linksMax } };
    await expect(heldLinks(store, object, now, page)).rejects.toMatchObject(refused);
    expect(read.lines).toBe(linksMax);
  });

  test('are all found among as many as are looked through, the oldest too', async () => {
    const { store } = storeOf(linksMax - 1, (index) => index === 0 || index === 60_000);
    expect(idsOf(await heldLinks(store, object, now, page))).toEqual([0, 60_000]);
    const own = await heldLinks(store, object, now, page, ({ delegateActorId }) => delegateActorId === 'delegate 0');
    expect(idsOf(own)).toEqual([0]);
  });

  test('at a time gone by are those of then', async () => {
    const { store } = storeOf(2_000, (index) => index < 3);
    expect(idsOf(await heldLinks(store, object, isoTime(startMs + 1_500), page))).toEqual([0, 1, 2, 1_500]);
  });
});

describe('every link', () => {
  test('is on some page, the last page of a list too, and a page reads what it shows', async () => {
    const { store, read } = storeOf(linksMax + 10_000, () => false);
    expect(idsOf(await everyLink(store, object, { ...page, limit: 3, offset: 700 }))).toEqual([700, 701, 702]);
    expect(read.lines).toBe(3);
    expect(idsOf(await everyLink(store, object, { ...page, offset: 100_000 }))).toEqual(range(100_000, 1_000));
    expect(read.lines).toBe(1_003);
    const newest = await everyLink(store, object, { limit: 2, offset: 0, descending: true });
    expect(idsOf(newest)).toEqual([linksMax + 9_999, linksMax + 9_998]);
  });

  test('but for one that cannot be read is found, and one whose end cannot be read has ended', async () => {
    const { store } = storeOf(5, (index) => index !== 3);
    const damaged = {
      ...store,
      lines: async (...asked: Parameters<typeof store.lines>) =>
        (await store.lines(...asked)).map((line) => (line.order === '1' ? { ...line, value: '{}' } : line)),
      cell: async (key: string) => (await store.cell(key)) && { version: 0, value: '{}' },
    };
    const links = await everyLink(damaged, object, { ...page, limit: 5 });
    expect(idsOf(links)).toEqual([0, 2, 3, 4]);
    expect(links.map(({ endedAt }) => endedAt)).toEqual([null, null, isoTime(startMs + 3), null]);
  });
});
