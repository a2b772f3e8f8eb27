import { expect, test } from 'vitest';
import type { Call } from '../../src/service/call.ts';
import { developerService } from '../../src/service/credentials/developers.ts';
import { entityService, examinedMax } from '../../src/service/parties/entities.ts';
import type { FindPage, RecordStore } from '../../src/store/record-store.ts';

/** Records of one kind, made as they are looked up. `pages` are those that were asked for. */
function recordsOf(count: number, recordAt: (at: number) => object, pages: FindPage[] = []): RecordStore {
  const store: Pick<RecordStore, 'find'> = {
    find: async (kind, _, page) => {
      pages.push(page);
      const { limit, offset = 0, descending = false, after } = page;
      const behind = after === undefined ? 0 : 1 + (descending ? count - 1 - Number(after.id) : Number(after.id));
      const from = behind + offset;
      return Array.from({ length: Math.max(0, Math.min(limit, count - from)) }, (_none, place) => {
        const at = descending ? count - 1 - from - place : from + place;
        return { kind, id: String(at), version: '1', order: '', value: JSON.stringify(recordAt(at)) };
      });
    },
  };
  return store as RecordStore;
}

const going = new AbortController().signal;
const call = { caller: { actorId: 'an actor', world: 'sandbox' }, signal: going } as unknown as Call;

function entitiesOf(count: number, pages: FindPage[] = [], signal = going) {
  const records = recordsOf(
    count,
    (at) => ({
      entityId: String(at),
      displayName: 'x',
      entityType: at === count - 1 ? 'LAST' : 'DEVICE',
    }),
    pages,
  );
  const parts = [records, {}, {}, {}, {}] as unknown as Parameters<typeof entityService>;
  const { listEntities } = entityService(...parts);
  return async (query: object) => {
    const { entities } = await listEntities(query as Parameters<typeof listEntities>[0], { ...call, signal });
    return entities.map(({ entityId }) => Number(entityId));
  };
}

test('an entity list by two filters for which too many would have to be looked through is refused, and not shown empty', async () => {
  const list = entitiesOf(examinedMax + 10);
  const both = { displayName: 'x', entityType: 'LAST' };
  const refused = { code: 'invalid_argument', details: { field: 'offset', limit: examinedMax } };
  await expect(list({ ...both })).rejects.toMatchObject(refused);
  await expect(list({ ...both, order: 'desc', limit: 2 })).rejects.toMatchObject(refused);
  expect(await list({ ...both, order: 'desc', limit: 1 })).toEqual([examinedMax + 9]);
  expect(await entitiesOf(examinedMax - 1)({ ...both })).toEqual([examinedMax - 2]);
});

test.each([
  ['a page', { limit: 1_000, offset: 700 }, 700],
  ['a page by a filter', { limit: 1_000, offset: 700, displayName: 'x', order: 'desc' }, 2_299],
  ['a page by two', { limit: 1_000, offset: 700, displayName: 'x', entityType: 'DEVICE' }, 700],
])(
  '%s of a long entity list is read in small pieces, each from where the one before it ended',
  async (_, query, first) => {
    const pages: FindPage[] = [];
    const page = await entitiesOf(3_000, pages)(query);
    expect([page.length, page[0]]).toEqual([1_000, first]);
    expect(new Set(page).size).toBe(1_000);
    expect(Math.max(...pages.map(({ limit }) => limit))).toBeLessThan(30);
    expect(pages.slice(1).filter(({ offset = 0, after }) => offset > 0 || after === undefined)).toEqual([]);
  },
);

test('an entity list is not read on when its caller has gone', async () => {
  const pages: FindPage[] = [];
  const gone = AbortSignal.abort();
  const refused = { code: 'unavailable' };
  await expect(entitiesOf(3_000, pages, gone)({ limit: 1_000 })).rejects.toMatchObject(refused);
  expect(pages).toHaveLength(1);
});

test('a developer’s keys are listed behind however many revoked ones', async () => {
  const count = 2_003;
  const records = recordsOf(count, (at) => ({ keyId: String(at), revokedAt: at < 2_001 ? 'then' : null }));
  const identities = { load: async () => ({ actorId: '0193a000-0000-7000-8000-00000000000a' }) };
  const parts = [records, identities, {}] as unknown as Parameters<typeof developerService>;
  const { keys } = await developerService(...parts).getDeveloper({} as never, call);
  expect(keys.map(({ keyId }) => keyId)).toEqual(['2001', '2002']);
});
