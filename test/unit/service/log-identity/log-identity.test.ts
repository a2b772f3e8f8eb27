import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { verifyDigest } from '../../../../src/domain/keys/key-object.ts';
import { verifyingKey } from '../../../../src/domain/keys/verifying-key.ts';
import { endorsementDigest } from '../../../../src/domain/log/endorsement.ts';
import { publicKeyOf, rotateAuthority } from '../../../../src/service/authority/authority.ts';
import { openLogIdentity } from '../../../../src/service/log-identity/log-identity.ts';
import { readLog } from '../../../../src/service/log-identity/log-record.ts';
import { configError } from '../../../support/config-error.ts';
import { logScene, newSigningKey } from '../../../support/log-stores.ts';

const origin = 'ledger.example/v1';
const text = (name: string) => Buffer.from(`${name}/ledgers/0193a000-0000-7000-8000-000000000001\n1\nAA==\n`);

describe('the first node of a store', () => {
  test('gives it its origin and its key, which the authority endorses', async () => {
    const { parts, logKey, authorityKey, nowIso } = await logScene();
    const identity = await openLogIdentity({ ...parts, origin });
    const publicKey = publicKeyOf(logKey);
    expect(identity.serviceName).toBe(origin);
    expect(identity.publicKey.toString('base64')).toBe(publicKey);
    const [key] = identity.keys;
    expect(key).toEqual({
      publicKey,
      validFrom: nowIso,
      validTo: null,
      endorsement: { kid: 'svc:authority#key-1', sig: expect.any(String) },
    });
    const digest = endorsementDigest({ serviceName: origin, publicKey: identity.publicKey });
    const endorser = verifyingKey(publicKeyOf(authorityKey));
    if (endorser === null) throw new Error('the authority has no key');
    expect(verifyDigest(digest, Buffer.from(key?.endorsement.sig ?? '', 'base64'), endorser)).toBe(true);
    expect(identity.previous).toEqual([]);
    expect(identity.behind.isEmpty).toBe(true);
  });

  test('draws an origin where none is configured, and later nodes have the same', async () => {
    const { parts } = await logScene();
    const [first, second] = await Promise.all([openLogIdentity(parts), openLogIdentity(parts)]);
    expect(first.serviceName).toMatch(/^localhost\/dev-[0-9a-f]{8}$/);
    expect(second.serviceName).toBe(first.serviceName);
    expect((await openLogIdentity({ ...parts, origin: first.serviceName })).keys).toEqual(first.keys);
  });

  test('is refused a key that the authority has, or had', async () => {
    const { parts, records, authorityKey, nowIso } = await logScene();
    await expect(openLogIdentity({ ...parts, logKey: authorityKey })).rejects.toMatchObject(
      configError(/^A key of the authority/),
    );
    const next = newSigningKey();
    await rotateAuthority(records, authorityKey, next, nowIso);
    const logKey = authorityKey;
    await expect(openLogIdentity({ ...parts, authorityKey: next, logKey })).rejects.toMatchObject(
      configError(/^A key of the authority/),
    );
    expect((await readLog(records)).log).toBeNull();
  });
});

describe('a later node', () => {
  test('is refused with another origin, and the sentence names both and the command', async () => {
    const { parts } = await logScene();
    await openLogIdentity({ ...parts, origin });
    const opening = openLogIdentity({ ...parts, origin: 'other.example' });
    await expect(opening).rejects.toMatchObject(configError(/other\.example.*ledger\.example\/v1.*log new-origin/));
  });

  test('is refused with another key, and the sentence names the command', async () => {
    const { parts } = await logScene();
    await openLogIdentity({ ...parts, origin });
    const opening = openLogIdentity({ ...parts, logKey: newSigningKey() });
    await expect(opening).rejects.toMatchObject(configError(/LOG_KEY_FILE.*log rotate/));
  });

  test('keeps the endorsement by the key that the authority had then', async () => {
    const { parts, records, authorityKey, nowIso } = await logScene();
    const { keys } = await openLogIdentity(parts);
    const next = newSigningKey();
    await rotateAuthority(records, authorityKey, next, nowIso);
    expect((await openLogIdentity({ ...parts, authorityKey: next })).keys).toEqual(keys);
  });
});

describe.each([
  ['a data directory', null, undefined],
  ['a keyspace', 'keyspace 1', 'keyspace 2'],
])('a restored copy of %s', (_what, keyspaceId, copyId) => {
  test('signs nothing under a configured origin, also after the next start', async () => {
    const { parts, stamp, records } = await logScene(undefined, keyspaceId);
    await openLogIdentity({ ...parts, origin });
    const { version } = await readLog(records);
    stamp.mark(copyId);
    for (let start = 1; start <= 2; start += 1) {
      const identity = await openLogIdentity({ ...parts, origin });
      expect(identity.behind.store).toBe(true);
      expect(() => identity.sign(text(origin))).toThrow(
        expect.objectContaining({ code: 'unavailable', details: { reason: 'log_behind' } }),
      );
    }
    expect((await readLog(records)).version).toBe(version);
  });

  test('takes a new origin by itself where none is configured, and lists the old one', async () => {
    const { parts, stamp, nowIso } = await logScene(undefined, keyspaceId);
    const before = await openLogIdentity(parts);
    stamp.mark(copyId);
    const [after, together] = await Promise.all([openLogIdentity(parts), openLogIdentity(parts)]);
    expect(after.serviceName).not.toBe(before.serviceName);
    expect(together.serviceName).toBe(after.serviceName);
    expect(after.behind.isEmpty).toBe(true);
    expect(after.previous).toEqual([
      { origin: before.serviceName, keys: [{ ...before.keys[0], validTo: nowIso }], endedAt: nowIso },
    ]);
    expect(after.sign(text(after.serviceName))).toHaveLength(64);
    expect((await openLogIdentity(parts)).serviceName).toBe(after.serviceName);
  });
});

test('a copy of a store that no node of this version has served is marked too', async () => {
  const { parts, stamp } = await logScene();
  stamp.mark();
  expect((await openLogIdentity({ ...parts, origin })).behind.store).toBe(true);
});

describe('the log key', () => {
  test('signs the text of a log of this service', async () => {
    const { parts, logKey } = await logScene();
    const { sign } = await openLogIdentity({ ...parts, origin });
    expect(verify(null, text(origin), createPublicKey(logKey), sign(text(origin)))).toBe(true);
  });

  test.each([
    ['a log of another service', text('ledger.example/v10')],
    ['a text that names the service elsewhere', Buffer.from(`x\n${origin}/ledgers/1\n`)],
    ['the name alone', Buffer.from(origin)],
    ['a digest', Buffer.alloc(32, 7)],
    ['nothing', Buffer.alloc(0)],
  ])('does not sign %s', async (_what, message) => {
    const { parts } = await logScene();
    const { sign } = await openLogIdentity({ ...parts, origin });
    expect(() => sign(message)).toThrow(RangeError);
  });
});
