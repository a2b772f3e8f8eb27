import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mergedPage, type Place, type ReadList } from '../../../../src/service/actors/merged-page.ts';
import type { FindPage, FoundRecord } from '../../../../src/store/record-store.ts';
import { compareText } from '../../../../src/store/store-text.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';

/** Lists of these places in a store. */
async function listsOf(places: readonly (readonly Place[])[]): Promise<ReadList<FoundRecord>[]> {
  const store = new MemoryRecordStore();
  for (const [at, list] of places.entries()) {
    for (const { order, id } of list) {
      const lookups = [{ name: 'list', value: String(at), order }];
      await store.put({ kind: 'k', id, replaces: 'absent', value: '{}', lookups });
    }
  }
  return places.map(
    (_, at) =>
      async function* (page: FindPage) {
        yield* await store.find('k', { name: 'list', value: String(at) }, page);
      },
  );
}

const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id);

test('a page of several lists is that of the one sorted list that they make together', async () => {
  const list = fc.array(fc.constantFrom('1', '2', '3', 'é'), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(list, { minLength: 1, maxLength: 3 }),
      fc.nat(120),
      fc.integer({ min: 1, max: 8 }),
      fc.boolean(),
      async (orders, offset, limit, descending) => {
        const places = orders.map((of, n) => of.map((order, at) => ({ order, id: `${(at * 7) % 40}-${n}-${at}` })));
        const sorted = places.flat().sort((a, b) => compareText(a.order, b.order) || compareText(a.id, b.id));
        const all = descending ? sorted.toReversed() : sorted;
        const lists = await listsOf(places);
        const page = await mergedPage(lists, (record) => record, { limit, offset, descending });
        expect(idsOf(page)).toEqual(idsOf(all.slice(offset, offset + limit)));
      },
    ),
  );
});
