import { describe, expect, test, vi } from 'vitest';
import { publicKeyOf } from '../../../../src/service/authority/authority.ts';
import { keepLog, rotateLogKey, takeNewOrigin } from '../../../../src/service/log-identity/log-changes.ts';
import { openLogIdentity } from '../../../../src/service/log-identity/log-identity.ts';
import { isLogKey, readLog } from '../../../../src/service/log-identity/log-record.ts';
import { configError } from '../../../support/config-error.ts';
import { logScene, newSigningKey } from '../../../support/log-stores.ts';

const origin = 'ledger.example/v1';
const moved = 'ledger.example/v1-2026-11-27';
const later = '2026-11-27T00:00:00.000Z';

async function served(keyspaceId: string | null = null) {
  const scene = await logScene(undefined, keyspaceId);
  await openLogIdentity({ ...scene.parts, origin });
  const { records, stamp, authorityKey } = scene;
  return { ...scene, change: { records, stamp, authorityKey, nowIso: later } };
}

describe('a rotation', () => {
  test('lists the old key with its end, and a node needs the new one', async () => {
    const { parts, change, logKey } = await served();
    const next = newSigningKey();
    await rotateLogKey(change, next);
    await expect(openLogIdentity(parts)).rejects.toMatchObject(configError(/^LOG_KEY_FILE holds another key/));
    const { keys, serviceName } = await openLogIdentity({ ...parts, logKey: next });
    expect(serviceName).toBe(origin);
    expect(keys.map(({ publicKey, validFrom, validTo }) => [publicKey, validFrom, validTo])).toEqual([
      [publicKeyOf(logKey), parts.nowIso, later],
      [publicKeyOf(next), later, null],
    ]);
  });

  test('changes nothing when it is run again', async () => {
    const { change, records } = await served();
    const next = newSigningKey();
    await rotateLogKey(change, next);
    const { version } = await readLog(records);
    await rotateLogKey({ ...change, nowIso: '2026-11-28T00:00:00.000Z' }, next);
    expect((await readLog(records)).version).toBe(version);
  });

  test('does not go back to an old key, and takes no key of the authority', async () => {
    const { change, logKey, authorityKey, records } = await served();
    await rotateLogKey(change, newSigningKey());
    await expect(rotateLogKey(change, logKey)).rejects.toMatchObject(
      configError(/signed the logs of the store before/),
    );
    await expect(rotateLogKey(change, authorityKey)).rejects.toMatchObject(configError(/^A key of the authority/));
    expect(await isLogKey(records, publicKeyOf(logKey))).toBe(true);
    expect(await isLogKey(records, publicKeyOf(authorityKey))).toBe(false);
  });

  test('does not make a restored copy sign', async () => {
    const { parts, change, stamp } = await served();
    stamp.mark();
    const next = newSigningKey();
    await rotateLogKey(change, next);
    expect((await openLogIdentity({ ...parts, origin, logKey: next })).behind.store).toBe(true);
  });
});

describe('a new origin', () => {
  test.each([
    ['a data directory', null, undefined],
    ['a keyspace', 'keyspace 1', 'keyspace 2'],
  ])('makes a restored copy of %s sign again, with a new key if it is given', async (_what, keyspaceId, copyId) => {
    const { parts, change, stamp, logKey } = await served(keyspaceId);
    stamp.mark(copyId);
    const next = newSigningKey();
    await takeNewOrigin(change, moved, next);
    await expect(openLogIdentity({ ...parts, origin, logKey: next })).rejects.toMatchObject(
      configError(/^LOG_ORIGIN is /),
    );
    const identity = await openLogIdentity({ ...parts, origin: moved, logKey: next });
    expect(identity.behind.isEmpty).toBe(true);
    expect(identity.keys.map(({ publicKey }) => publicKey)).toEqual([publicKeyOf(next)]);
    expect(identity.previous).toMatchObject([
      { origin, endedAt: later, keys: [{ publicKey: publicKeyOf(logKey), validTo: later }] },
    ]);
  });

  test('goes on with the key in use, which the authority endorses under the new name', async () => {
    const { parts, change } = await served();
    const before = await openLogIdentity(parts);
    await takeNewOrigin(change, moved, null);
    const after = await openLogIdentity(parts);
    expect(after.keys[0]?.publicKey).toBe(before.keys[0]?.publicKey);
    expect(after.keys[0]?.endorsement.sig).not.toBe(before.keys[0]?.endorsement.sig);
  });

  test('is none that the store has had, and comes with no key that signed before', async () => {
    const { change, records, logKey } = await served();
    await expect(takeNewOrigin(change, origin, null)).rejects.toMatchObject(configError(/was never used/));
    await takeNewOrigin(change, moved, newSigningKey());
    for (const had of [origin, moved])
      await expect(takeNewOrigin(change, had, newSigningKey())).rejects.toMatchObject(configError(/was never used/));
    await expect(takeNewOrigin(change, 'third.example', logKey)).rejects.toMatchObject(configError(/make a new one/));
    expect((await readLog(records)).log?.origin).toBe(moved);
  });

  test('that was not written leaves the mark of the copy', async () => {
    const { change, stamp, records } = await served();
    stamp.mark();
    vi.spyOn(records, 'put').mockResolvedValue({ ok: false, current: null });
    await expect(takeNewOrigin(change, moved, null)).rejects.toMatchObject(configError(/was changed meanwhile/));
    expect(stamp.isCopy()).toBe(true);
  });
});

describe('keeping the log', () => {
  test.each([
    ['a data directory', null, undefined],
    ['a keyspace', 'keyspace 1', 'keyspace 2'],
  ])('makes a copy of %s go on under its name and key', async (_what, keyspaceId, copyId) => {
    const { parts, change, stamp } = await served(keyspaceId);
    const before = await openLogIdentity(parts);
    stamp.mark(copyId);
    expect(await keepLog(change)).toEqual({ wasCopy: true });
    const after = await openLogIdentity({ ...parts, origin });
    expect(after.behind.isEmpty).toBe(true);
    expect(after.keys).toEqual(before.keys);
    expect(after.previous).toEqual([]);
  });

  test('does nothing to an original', async () => {
    const { change, records } = await served();
    const { version } = await readLog(records);
    expect(await keepLog(change)).toEqual({ wasCopy: false });
    expect((await readLog(records)).version).toBe(version);
  });
});

test('a store that no node has served has no log to change', async () => {
  const { records, stamp, authorityKey } = await logScene();
  const change = { records, stamp, authorityKey, nowIso: later };
  await expect(rotateLogKey(change, newSigningKey())).rejects.toMatchObject(configError(/start a node on it once/));
  await expect(takeNewOrigin(change, moved, null)).rejects.toMatchObject(configError(/start a node on it once/));
});
