import { expect, test } from 'vitest';
import type { Call } from '../../src/service/call.ts';
import { developerService } from '../../src/service/credentials/developers.ts';
import { entityService, examinedMax } from '../../src/service/parties/entities.ts';
import type { RecordStore } from '../../src/store/record-store.ts';

/** Records of one kind, made as they are looked up; `read` counts those found or passed over. */
function recordsOf(count: number, recordAt: (at: number) => object, read = { records: 0 }): RecordStore {
  const store: Pick<RecordStore, 'find'> = {
    find: async (kind, _, { limit, offset = 0, descending = false, after }) => {
      const step = descending ? -1 : 1;
      const first = after === undefined ? (descending ? count - 1 : 0) : Number(after.id) + step;
      const places = Array.from({ length: limit }, (_none, place) => first + (offset + place) * step);
      const there = places.filter((at) => at >= 0 && at < count);
      read.records += offset + there.length;
      return there.map((at) => ({
        kind,
        id: String(at),
        version: '1',
        order: '',
        value: JSON.stringify(recordAt(at)),
      }));
    },
  };
  return store as RecordStore;
}

const call = { caller: { actorId: 'an actor', world: 'sandbox' } } as unknown as Call;

function entitiesOf(count: number, read = { records: 0 }) {
  const recordAt = (at: number) => ({
    entityId: String(at),
    actorId: String(at),
    createdAt: '',
    entityType: at === count - 1 ? 'LAST' : 'DEVICE',
  });
  const records = recordsOf(count, recordAt, read);
  const parts = [records, {}, {}, {}, {}] as unknown as Parameters<typeof entityService>;
  const { listEntities } = entityService(...parts);
  return async (query: object) => {
    const { entities } = await listEntities(query as Parameters<typeof listEntities>[0], call);
    return entities.map(({ entityId }) => Number(entityId));
  };
}

test('an entity list by two filters for which too many would have to be looked through is refused, and not shown empty', async () => {
  const read = { records: 0 };
  const list = entitiesOf(examinedMax + 10, read);
  const both = { displayName: 'x', entityType: 'LAST' };
  const refused = { code: 'invalid_argument', details: { field: 'offset', limit: examinedMax } };
  await expect(list({ ...both })).rejects.toMatchObject(refused);
  expect(read.records).toBe(examinedMax);
  await expect(list({ ...both, order: 'desc', limit: 2 })).rejects.toMatchObject(refused);
  expect(await list({ ...both, order: 'desc', limit: 1 })).toEqual([examinedMax + 9]);
  expect(await entitiesOf(examinedMax - 1)({ ...both })).toEqual([examinedMax - 2]);
});

test('a developer’s keys are listed behind however many revoked ones', async () => {
  const count = 2_003;
  const records = recordsOf(count, (at) => ({ keyId: String(at), revokedAt: at < 2_001 ? 'then' : null }));
  const identities = { load: async () => ({ actorId: '0193a000-0000-7000-8000-00000000000a' }) };
  const parts = [records, identities, {}] as unknown as Parameters<typeof developerService>;
  const { keys } = await developerService(...parts).getDeveloper({} as never, call);
  expect(keys.map(({ keyId }) => keyId)).toEqual(['2001', '2002']);
});
