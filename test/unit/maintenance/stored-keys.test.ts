import { expect, test } from 'vitest';
import { isoTime } from '../../../src/domain/values/time.ts';
import { storedAuthority } from '../../../src/maintenance/scrub/stored-keys.ts';
import { openAuthority, rotateAuthority } from '../../../src/service/authority/authority.ts';
import type { AuthorityKeyRecord } from '../../../src/service/authority/key-list.ts';
import { newSigningKey } from '../../support/log-stores.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { startMs } from '../../support/world.ts';

const at = (days: number) => isoTime(startMs + days * 86_400_000);

async function storedList() {
  const records = new MemoryRecordStore();
  const key = newSigningKey();
  await openAuthority(records, key, at(0));
  const stored = async () => {
    const { value = '', version = '' } = (await records.get('authority', 'keys')) ?? {};
    return { version, keys: (JSON.parse(value) as { keys: AuthorityKeyRecord[] }).keys };
  };
  return { records, key, stored };
}

test('a list of one key with another date or name than the trust anchor has is found', async () => {
  const { records, stored } = await storedList();
  const { version, keys: anchor } = await stored();
  expect((await storedAuthority(records, anchor)).findings).toEqual([]);
  const value = JSON.stringify({ keys: anchor.map((key) => ({ ...key, validFrom: at(9) })) });
  await records.put({ kind: 'authority', id: 'keys', replaces: version, value, lookups: [] });
  const finding = { type: 'invalid_authority_key', table: 'record', key: 'kind=authority, id=keys' };
  expect((await storedAuthority(records, anchor)).findings).toMatchObject([
    { ...finding, detail: expect.stringContaining(`${at(9)}, and in the trust anchor ${at(0)}`) },
  ]);
  const { keys } = await stored();
  const renamed = keys.map((key) => ({ ...key, kid: 'svc:authority#key-2' }));
  expect((await storedAuthority(records, renamed)).findings).toMatchObject([finding]);
});

test('a trust anchor from before a rotation agrees with the list after it, and one with another end does not', async () => {
  const { records, key, stored } = await storedList();
  const { keys: before } = await stored();
  await rotateAuthority(records, key, newSigningKey(), at(2));
  const { keys: after } = await stored();
  for (const anchor of [before, after]) expect((await storedAuthority(records, anchor)).findings).toEqual([]);
  const other = after.map((one) => (one.validTo === null ? one : { ...one, validTo: at(1) }));
  expect((await storedAuthority(records, other)).findings).toMatchObject([{ type: 'invalid_authority_key' }]);
});
