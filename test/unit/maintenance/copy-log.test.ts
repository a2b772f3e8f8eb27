import { describe, expect, test } from 'vitest';
import { CopyRefused } from '../../../src/maintenance/copy/copy-ledger.ts';
import { copyLog } from '../../../src/maintenance/copy/copy-log.ts';
import { openAuthority } from '../../../src/service/authority/authority.ts';
import { openLogIdentity } from '../../../src/service/log-identity/log-identity.ts';
import { readLog } from '../../../src/service/log-identity/log-record.ts';
import { logScene, newStamp } from '../../support/log-stores.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';

const origin = 'ledger.example/v1';

/** A served source, and a keyspace that no node has served yet. */
async function scene() {
  const source = await logScene();
  await openLogIdentity({ ...source.parts, origin });
  const target = { records: new MemoryRecordStore(), stamp: newStamp('keyspace 1') };
  await openAuthority(target.records, source.authorityKey, source.nowIso);
  return { source, target };
}

describe('the log of copied data', () => {
  test.each([origin, null])('goes on in the target if its nodes have the same origin: %s', async (logOrigin) => {
    const { source, target } = await scene();
    expect(await copyLog(source, target, logOrigin)).toBe(true);
    // Again, as after an interruption.
    expect(await copyLog(source, target, logOrigin)).toBe(true);
    const identity = await openLogIdentity({ ...source.parts, ...target, origin });
    expect(identity.behind.isEmpty).toBe(true);
    expect(identity.keys).toEqual((await readLog(source.records)).log?.keys);
  });

  test('stays behind if the nodes of the target have another origin', async () => {
    const { source, target } = await scene();
    expect(await copyLog(source, target, 'cluster.example/v1')).toBe(false);
    expect((await readLog(target.records)).log).toBeNull();
    await openLogIdentity({ ...source.parts, ...target, origin: 'cluster.example/v1' });
    expect(await copyLog(source, target, null)).toBe(false);
  });

  test('is not copied from a restored copy', async () => {
    const { source, target } = await scene();
    source.stamp.mark();
    await expect(copyLog(source, target, origin)).rejects.toThrow(CopyRefused);
    expect((await readLog(target.records)).log).toBeNull();
  });
});
