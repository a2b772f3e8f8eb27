import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { signDigest } from '../../src/domain/keys/key-object.ts';
import { endorsementDigest } from '../../src/domain/log/endorsement.ts';
import { publicKeyOf } from '../../src/service/authority/authority.ts';
import { type AuthorityKeyRecord, signList, signStart } from '../../src/service/authority/key-list.ts';
import type { LogRecord } from '../../src/service/log-identity/log-record.ts';
import { recordKey } from '../../src/store/lmdb/keys.ts';
import { openTables } from '../../src/store/lmdb/tables.ts';
import { newOrder } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { newKeyFile, productionSettings } from '../support/production-settings.ts';
import { runHere } from '../support/program-here.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

interface Stored {
  readonly keys: readonly AuthorityKeyRecord[];
  readonly listSig?: string;
}

const root = suiteDir();
const dataDir = join(root, 'data');
const env = productionSettings(root);
/** What a writer to the store has: keys, but none of the service. */
const [forged, forgedLog] = [1, 2].map(() => generateKeyPairSync('ed25519').privateKey) as [
  ReturnType<typeof createPrivateKey>,
  ReturnType<typeof createPrivateKey>,
];
const kid = 'svc:authority#key-9';

/** Writes to the store as somebody who needs no key for it. Returns what was stored. */
async function edit<T>(kind: string, id: string, change: (value: T) => unknown): Promise<T> {
  const tables = openTables(dataDir);
  const key = recordKey(kind, id);
  const entry = key === null ? undefined : tables.records.getEntry(key);
  if (key === null || entry === undefined) throw new Error(`no record ${kind} ${id}`);
  const end = entry.value.indexOf('\n') + 1;
  const value = JSON.parse(entry.value.slice(end)) as T;
  await tables.records.put(key, entry.value.slice(0, end) + JSON.stringify(change(value)), entry.version ?? 0);
  await tables.root.close();
  return value;
}

/** The forger's key before the real one, whose start it signs. */
function withForgedKey({ keys, ...rest }: Stored): Stored {
  const [real] = keys;
  if (real === undefined) throw new Error('no key');
  const own = { kid, publicKey: publicKeyOf(forged), validFrom: '2026-01-01T00:00:00.000Z', validTo: null };
  return {
    ...rest,
    keys: [
      { ...own, startSig: null },
      { ...real, startSig: signStart(real, forged) },
    ],
  };
}

function withForgedLogKey(endorser: string) {
  return (log: LogRecord): LogRecord => {
    const publicKey = publicKeyOf(forgedLog);
    const digest = endorsementDigest({ serviceName: log.origin, publicKey: Buffer.from(publicKey, 'base64') });
    const dates = { validFrom: '2026-01-01T00:00:00.000Z', validTo: '2026-11-01T00:00:00.000Z' };
    const endorsement = { kid: endorser, sig: signDigest(digest, forged) };
    return { ...log, keys: [{ publicKey, ...dates, endorsement }, ...log.keys] };
  };
}

const scrub = (settings: Readonly<Record<string, string>>) =>
  runHere(['scrub'], { env: { DATA_DIR: dataDir, ...settings } });

beforeAll(async () => {
  await using node = await runNode({ env, dataDir });
  await newOrder(node.base);
});

test('a node does not start with a key of the authority that a writer to the store has put before its own', async () => {
  const stored = await edit('authority', 'keys', withForgedKey);
  const log = await edit('log', 'identity', withForgedLogKey(kid));
  await expect(runNode({ env, dataDir })).rejects.toThrow(/kind authority, id keys.*Restore the record/);
  for (const settings of [env, {}])
    expect(await scrub(settings)).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^invalid_authority_key {2}.* \(in record: kind=authority, id=keys\)$/m),
    });
  const rotated = await runHere(['authority', 'rotate', newKeyFile(root, 'next.pem')], {
    env: { ...env, DATA_DIR: dataDir },
  });
  expect(rotated).toMatchObject({ code: 1, err: expect.stringContaining('kind authority, id keys') });

  await edit('authority', 'keys', () => stored);
  await expect(runNode({ env, dataDir })).rejects.toThrow(/kind log, id identity.*Restore the record/);
  expect(await scrub(env)).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^invalid_log_key {2}.* \(in record: kind=log, id=identity\)$/m),
  });
  await edit('log', 'identity', withForgedLogKey('svc:authority#key-1'));
  await expect(runNode({ env, dataDir })).rejects.toThrow(/kind log, id identity/);

  await edit('log', 'identity', () => log);
  await using node = await runNode({ env, dataDir });
  const anchor = await done(node.base, 'GET', '/.well-known/svc-authority');
  expect(anchor.rows('keys').map((key) => key.kid)).toEqual(['svc:authority#key-1']);
  await node.stop();
  const whole = await scrub(env);
  expect(whole).toMatchObject({ code: 0, out: expect.not.stringContaining('AUTHORITY_KEY_FILE') });
});

test('scrub finds a list of other keys by the key in AUTHORITY_KEY_FILE, and without it by the keys of the log', async () => {
  const own = { kid: 'svc:authority#key-1', publicKey: publicKeyOf(forged), startSig: null, validTo: null };
  const keys = [{ ...own, validFrom: '2026-01-01T00:00:00.000Z' }];
  const stored = await edit('authority', 'keys', (): Stored => ({ keys, listSig: signList(keys, forged) }));
  expect(await scrub(env)).toMatchObject({ code: 1, out: expect.stringContaining('it lacks the key') });
  const withoutKey = await scrub({});
  expect(withoutKey).toMatchObject({ code: 1, out: expect.stringContaining('set AUTHORITY_KEY_FILE') });
  expect(withoutKey.out).toMatch(/^invalid_log_key {2}.* \(in record: kind=log, id=identity\)$/m);
  await edit('authority', 'keys', () => stored);
});

test('the list of one key of a version before 0.2.0 is signed at the start', async () => {
  const stored = await edit<Stored>('authority', 'keys', ({ keys }) => ({ keys }));
  expect(await scrub(env)).toMatchObject({ code: 0 });
  await (await runNode({ env, dataDir })).stop();
  expect(await edit('authority', 'keys', (now) => now)).toEqual(stored);
});

test('the list of two keys of a version before 0.2.0 is confirmed by its digest', async () => {
  const settings = { ...env, DATA_DIR: dataDir };
  const next = newKeyFile(root, 'second.pem');
  expect(await runHere(['authority', 'rotate', next], { env: settings })).toMatchObject({ code: 0 });
  await edit<Stored>('authority', 'keys', ({ keys }) => ({ keys }));
  const rotated = { ...env, AUTHORITY_KEY_FILE: next };
  await expect(runNode({ env: rotated, dataDir })).rejects.toThrow(/`ledger-trust authority confirm`/);
  const confirm = (...args: string[]) =>
    runHere(['authority', 'confirm', ...args], { env: { ...rotated, DATA_DIR: dataDir } });
  const shown = await confirm();
  expect(shown).toMatchObject({ code: 0, err: '' });
  const [digest = '', ...newestFirst] = (shown.out.match(/[0-9a-f]{64}/g) ?? []).toReversed();
  const prints = newestFirst.toReversed();
  expect(prints).toHaveLength(2);
  expect(await confirm(digest)).toMatchObject({ code: 0, err: '' });
  await using node = await runNode({ env: rotated, dataDir });
  const anchor = await done(node.base, 'GET', '/.well-known/svc-authority');
  expect(anchor.rows('keys').map(({ fingerprint }) => fingerprint)).toEqual(prints);
  const old = createPrivateKey(readFileSync(env.AUTHORITY_KEY_FILE));
  expect(anchor.rows('keys')[0]?.public_key).toBe(publicKeyOf(old));
});

test('a list that was cut off to its newest key is not signed, neither by a start nor by a rotation', async () => {
  const newest = join(root, 'second.pem');
  const publicKey = publicKeyOf(createPrivateKey(readFileSync(newest)));
  const dates = { validFrom: '2026-01-01T00:00:00.000Z', validTo: null };
  const cut = { keys: [{ kid: 'svc:authority#key-1', publicKey, ...dates, startSig: null }] };
  const stored = await edit<Stored>('authority', 'keys', () => cut);
  const settings = { ...env, AUTHORITY_KEY_FILE: newest };
  await expect(runNode({ env: settings, dataDir })).rejects.toThrow(/kind log, id identity/);
  const rotated = await runHere(['authority', 'rotate', newKeyFile(root, 'third.pem')], {
    env: { ...settings, DATA_DIR: dataDir },
  });
  expect(rotated).toMatchObject({ code: 1, err: expect.stringContaining('kind log, id identity') });
  expect(await edit('authority', 'keys', () => stored)).toEqual(cut);
});
