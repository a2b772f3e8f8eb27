import { expect, test } from 'vitest';
import type { Call } from '../../../../src/service/calls/call.ts';
import { developerService } from '../../../../src/service/developers/developers.ts';
import { entityService, examinedMax } from '../../../../src/service/entities/entities.ts';
import { changeMutex } from '../../../../src/service/records/change-mutex.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import type { FindPage, RecordStore } from '../../../../src/store/record-store.ts';

/** What entities and API keys have beside what a test says of them. */
const members = {
  ...{ actorType: 'device', entityType: 'DEVICE', uniqueId: 'serial', ownerActorId: null, metadata: '{}' },
  ...{ trustLevel: 'BASIC', requireArl: false, arlGateUpdatedAt: null, entityId: 'an entity', displayName: 'a name' },
  ...{ environment: 'sandbox', region: null, prefix: 'svc_sk_test_', name: 'a name', createdAt: 'then' },
};

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
        const id = String(at);
        const value = JSON.stringify({ ...members, actorId: id, hash: id, ...recordAt(at) });
        return { kind, id, version: '1', order: '', value };
      });
    },
  };
  return store as RecordStore;
}

const going = new AbortController().signal;
const caller = { actorId: 'an actor', world: 'sandbox' };
const call = { caller, walk: unboundedWalk() } as unknown as Call;

function entitiesOf(count: number, pages: FindPage[] = [], signal = going) {
  const entityAt = (at: number) => {
    const entityType = at === count - 1 ? 'LAST' : 'DEVICE';
    return { entityId: String(at), displayName: 'x', entityType };
  };
  const records = recordsOf(count, entityAt, pages);
  const parts = [records, {}, {}, {}, {}, changeMutex()] as unknown as Parameters<typeof entityService>;
  const { listEntities } = entityService(...parts);
  return async (query: object) => {
    const walked = { ...call, walk: unboundedWalk(signal) };
    const { entities } = await listEntities(query as Parameters<typeof listEntities>[0], walked);
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
  expect(pages).toEqual([]);
});

test('an entity list of large records leaves turns of the event loop to others', async () => {
  const records = recordsOf(200, (at) => ({ entityId: String(at), metadata: 'x'.repeat(100_000) }));
  const { listEntities } = entityService(
    ...([records, {}, {}, {}, {}, changeMutex()] as unknown as Parameters<typeof entityService>),
  );
  let turns = 0;
  let listed = false;
  const list = listEntities({ limit: 200 } as Parameters<typeof listEntities>[0], call).then(() => (listed = true));
  for (; !listed; turns++) await new Promise((resolve) => void setImmediate(resolve));
  await list;
  // 20 MB, at most some 2 MB a turn.
  expect(turns).toBeGreaterThan(10);
});

/** A developer’s API keys, the first of them revoked; the last one has the id `last`. */
function developerOf(revoked: number, active: number, last = String(revoked + active - 1)) {
  const made: unknown[] = [];
  const count = revoked + active;
  const records: RecordStore = {
    ...recordsOf(count, (at) => ({
      keyId: at === count - 1 ? last : String(at),
      revokedAt: at < revoked ? 'then' : null,
    })),
    put: async (write) => {
      made.push(write);
      return { ok: true, version: '1' };
    },
  };
  const identities = { load: async () => ({ actorId: '0193a000-0000-7000-8000-00000000000a' }) };
  const { getDeveloper, createApiKey } = developerService(
    ...([records, identities, {}, changeMutex()] as unknown as Parameters<typeof developerService>),
  );
  const making = { ...call, now: 0, newId: () => 'new', randomBytes: (length: number) => Buffer.alloc(length) };
  return {
    made,
    listed: async () => (await getDeveloper({} as never, call)).keys.map(({ keyId }) => keyId),
    create: () => createApiKey({ name: 'another' } as Parameters<typeof createApiKey>[0], making),
  };
}

test('a developer’s keys are listed behind however many revoked ones, and all of them', async () => {
  expect(await developerOf(2_001, 2).listed()).toEqual(['2001', '2002']);
  expect(await developerOf(110_000, 1).listed()).toEqual(['110000']);
  // As many as there may be of an earlier version, which had no bound.
  expect(await developerOf(3, 1_100).listed()).toHaveLength(1_100);
});

test('an actor that holds 1,000 API keys revokes one before it makes another', async () => {
  const full = developerOf(5, 1_000);
  await expect(full.create()).rejects.toMatchObject({
    code: 'invalid_argument',
    message: expect.stringContaining('revoke one first'),
    details: { limit: 1_000 },
  });
  expect(full.made).toEqual([]);
  const oneRevoked = developerOf(6, 999);
  await oneRevoked.create();
  expect(oneRevoked.made).toHaveLength(1);
});

test('a call run again finds the API key that it made, also where another made at the same time is one too many', async () => {
  expect(await developerOf(5, 1_001, 'new').create()).toMatchObject({ keyId: 'new' });
});
