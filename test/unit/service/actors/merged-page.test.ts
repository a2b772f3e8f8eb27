import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mergedPage, type Place, type ReadList } from '../../../../src/service/actors/merged-page.ts';
import type { FindPage, FoundRecord } from '../../../../src/store/record-store.ts';
import { compareText } from '../../../../src/store/store-text.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';

/** Lists of these places in a store, and what was read of them. */
async function listsOf(places: readonly (readonly Place[])[]) {
  const store = new MemoryRecordStore();
  let reads = 0;
  let records = 0;
  const lists: ReadList<FoundRecord>[] = [];
  for (const [at, list] of places.entries()) {
    const lookup = { name: 'list', value: String(at) };
    for (const { order, id } of list)
      await store.put({ kind: 'k', id, replaces: 'absent', value: '{}', lookups: [{ ...lookup, order }] });
    lists.push(async (page: FindPage) => {
      const found = await store.find('k', lookup, page);
      reads += 1;
      records += found.length;
      return found;
    });
  }
  return { lists, cost: () => ({ reads, records }) };
}

const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id);

test('a page of several lists is that of the one sorted list that they make together', async () => {
  const list = fc.array(fc.constantFrom('1', '2', '3', 'é'), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(list, { minLength: 1, maxLength: 3 }),
      fc.nat(60),
      fc.integer({ min: 1, max: 8 }),
      fc.boolean(),
      async (orders, offset, limit, descending) => {
        const places = orders.map((of, n) => of.map((order, at) => ({ order, id: `${(at * 7) % 40}-${n}-${at}` })));
        const sorted = places.flat().sort((a, b) => compareText(a.order, b.order) || compareText(a.id, b.id));
        const all = descending ? sorted.toReversed() : sorted;
        const { lists } = await listsOf(places);
        const page = await mergedPage(lists, (record) => record, { limit, offset, descending });
        expect(idsOf(page)).toEqual(idsOf(all.slice(offset, offset + limit)));
      },
    ),
  );
});

test('a deep page reads what it shows of each list, and a few on its way', async () => {
  const places = [0, 1].map((n) =>
    Array.from({ length: 1_500 }, (_, at) => ({ order: String(2 * at + n).padStart(5, '0'), id: `${n}-${at}` })),
  );
  const { lists, cost } = await listsOf(places);
  const page = await mergedPage(lists, (record) => record, { limit: 20, offset: 2_900, descending: false });
  expect(idsOf(page).slice(0, 3)).toEqual(['0-1450', '1-1450', '0-1451']);
  expect(cost().reads).toBeLessThan(30);
  expect(cost().records).toBeLessThan(120);
});
