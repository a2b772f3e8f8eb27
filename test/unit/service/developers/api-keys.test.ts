import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { uuidV7 } from '../../../../src/domain/values/uuid.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { apiKeyCollection } from '../../../../src/service/developers/api-key-record.ts';
import { developerService } from '../../../../src/service/developers/developers.ts';
import { changeMutex, changesWaitingByDefault } from '../../../../src/service/records/change-mutex.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import type { RecordStore } from '../../../../src/store/record-store.ts';
import { settled } from '../../../support/clock.ts';
import { supplier, uuid } from '../../../support/commands.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { slowRecords } from '../../../support/slow-records.ts';
import { codeOf } from '../../../support/world.ts';

/** An actor with so many API keys, and a call that makes another one. */
async function developerWith(count: number, records: RecordStore) {
  const keys = apiKeyCollection(records);
  const key = { actorId: supplier, environment: 'sandbox', region: null, prefix: 'p', name: 'n' } as const;
  for (let at = 0; at < count; at++)
    await keys.create({ ...key, hash: `h${at}`, keyId: uuid(at), createdAt: 'then', revokedAt: null });
  const cache = { forget: () => {} };
  const { createApiKey, revokeApiKey } = developerService(
    ...([records, {}, cache, changeMutex()] as unknown as Parameters<typeof developerService>),
  );
  const request = { name: 'another' } as Parameters<typeof createApiKey>[0];
  const create = ({ signal } = new AbortController()) => {
    const call = {
      caller: { actorId: supplier, world: 'sandbox' },
      walk: unboundedWalk(signal),
      signal,
      now: 0,
      newId: () => uuidV7(0, randomBytes(10)),
      randomBytes,
    };
    return codeOf(createApiKey(request, call as unknown as Call));
  };
  const revoke = (keyId: string, now: number) => {
    const call = { caller: { actorId: supplier }, signal: new AbortController().signal, now };
    return codeOf(revokeApiKey({ keyId } as Parameters<typeof revokeApiKey>[0], call as unknown as Call));
  };
  return { keys, create, revoke };
}

test('calls that run at once do not make more than 1,000 API keys of an actor', async () => {
  const { create } = await developerWith(995, new MemoryRecordStore());
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => create()));
  expect(outcomes.filter((outcome) => outcome === 'carried out')).toHaveLength(5);
});

test('creations of an actor wait up to CHANGES_WAITING, and one whose call ends leaves at once', async () => {
  const slow = slowRecords(new MemoryRecordStore());
  const { create, keys } = await developerWith(1, slow.records);
  slow.next('hangs');
  const first = create();
  await settled();
  const ending = new AbortController();
  const ended = Array.from({ length: changesWaitingByDefault }, () => create(ending));
  await settled();
  expect(await create()).toBe('overloaded');
  ending.abort();
  expect(new Set(await Promise.all(ended))).toEqual(new Set(['unavailable']));
  const next = create();
  await settled();
  await slow.land();
  expect(await Promise.all([first, next])).toEqual(['carried out', 'carried out']);
  expect(await keys.find(unboundedWalk(), 'actor', supplier, { limit: 100 })).toHaveLength(3);
});

test('a call that revoked an API key is carried out again, and another call does not find the key', async () => {
  const { keys, revoke } = await developerWith(1, new MemoryRecordStore());
  expect([await revoke(uuid(0), 1_000), await revoke(uuid(0), 1_000)]).toEqual(Array(2).fill('carried out'));
  expect(await revoke(uuid(0), 2_000)).toBe('not_found');
  expect((await keys.get('h0'))?.value.revokedAt).toBe('1970-01-01T00:00:01.000Z');
});

test('an API key that several calls revoke at once is written once', async () => {
  const slow = slowRecords(new MemoryRecordStore());
  const { keys, revoke } = await developerWith(1, slow.records);
  const puts = slow.puts;
  const answers = await Promise.all([revoke(uuid(0), 1_000), revoke(uuid(0), 2_000), revoke(uuid(0), 3_000)]);
  expect(answers).toEqual(Array(3).fill('carried out'));
  expect(slow.puts).toBe(puts + 1);
  expect((await keys.get('h0'))?.value.revokedAt).toBe('1970-01-01T00:00:01.000Z');
});
