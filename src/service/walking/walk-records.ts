import { charsOf, pageCharsMax } from '../../store/pages.ts';
import type { FindPage, FoundRecord, LookupName, RecordStore } from '../../store/record-store.ts';
import { type Decoded, decodeOrPassOver } from '../../store/unreadable-record.ts';
import { boundedRecords } from './bounded-stores.ts';
import type { Walk } from './walk.ts';

/** Records of a list that are read, and in memory, at once. */
const readAtOnceMax = 24;

/** Yields the records of a list. Records that cannot be read are skipped, and others take their places on the page. */
export async function* walkRecords<T>(
  walk: Walk,
  store: Pick<RecordStore, 'find'>,
  kind: string,
  lookup: LookupName,
  page: Omit<FindPage, 'charsMax'>,
  decode: (record: FoundRecord) => T,
): AsyncGenerator<Decoded<T>> {
  const records = boundedRecords(walk, store);
  let behind: Omit<FindPage, 'limit'> = page;
  for (let left = page.limit; left > 0; ) {
    const limit = Math.min(left, readAtOnceMax);
    const found = await records.find(kind, lookup, { ...behind, limit, charsMax: pageCharsMax });
    for (const record of found) {
      const wait = walk.whenFree();
      if (wait !== null) await wait;
      walk.use(0, record.value.length);
      const value = decodeOrPassOver(record, () => decode(record));
      if (value === undefined) continue;
      left -= 1;
      yield { record, value };
    }
    const last = found.at(-1);
    if (last === undefined || (found.length < limit && charsOf(found) < pageCharsMax)) return;
    behind = { ...page, offset: 0, after: last };
  }
}
