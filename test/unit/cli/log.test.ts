import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { ed25519Key } from '../../../src/domain/keys/key-object.ts';
import { readConfig } from '../../../src/node/config.ts';
import { readNodeKeys } from '../../../src/node/node-keys.ts';
import { openAuthority, publicKeyOf } from '../../../src/service/authority/authority.ts';
import { openLogIdentity } from '../../../src/service/log-identity/log-identity.ts';
import { openLmdb } from '../../../src/store/lmdb/open.ts';
import { productionSettings } from '../../support/production-settings.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { dir } = newShell();
const ownFiles = { authorityKeyFile: null, secretsKeyFile: null, logKeyFile: null };
const nowIso = '2026-11-26T00:00:00.000Z';

let count = 0;
let dataDir = '';
let nextKey = '';

/** Opens the log as a node does at its start. */
async function start() {
  await using stores = await openLmdb({ dataDir, now: Date.now, onFatal: () => {} });
  const { authority, log } = readNodeKeys({ ...ownFiles, dataDir });
  await openAuthority(stores.records, authority, nowIso);
  const random = (bytes: number) => Buffer.alloc(bytes, count);
  const parts = { records: stores.records, stamp: stores.stamp, authorityKey: authority, logKey: log, nowIso, random };
  return await openLogIdentity({ ...parts, origin: null });
}

const command = (...args: string[]) => runHere(['log', ...args], { env: { DATA_DIR: dataDir } });
const publicKeyIn = (file: string) => publicKeyOf(ed25519Key(readFileSync(file, 'utf8')));
const copyMark = () => join(dataDir, 'COPY');

beforeEach(async () => {
  count += 1;
  dataDir = join(dir, `data-${count}`);
  nextKey = join(dir, `next-${count}.pem`);
  expect((await runHere(['keygen', '--out', nextKey])).code).toBe(0);
});

describe('log rotate', () => {
  it('makes the key that the node keeps for itself another one, and may be run again', async () => {
    const before = await start();
    const { code, out, err } = await command('rotate', nextKey);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain(`signs the logs of ${before.serviceName} from `);
    const own = join(dataDir, 'log.pem');
    expect(publicKeyIn(own)).toBe(publicKeyIn(nextKey));
    expect(statSync(own).mode & 0o777).toBe(0o600);
    expect((await command('rotate', nextKey)).out).toBe(out);
    expect((await start()).keys).toHaveLength(2);
  });

  it('completes a rotation that ended before the key was kept', async () => {
    await start();
    const own = join(dataDir, 'log.pem');
    const old = readFileSync(own);
    await command('rotate', nextKey);
    writeFileSync(own, old, { mode: 0o600 });
    await expect(start()).rejects.toThrow(/log rotate/);
    expect((await command('rotate', nextKey)).code).toBe(0);
    expect((await start()).keys).toHaveLength(2);
  });

  it('replaces a key that was lost', async () => {
    await start();
    rmSync(join(dataDir, 'log.pem'));
    expect(await command('rotate', nextKey)).toMatchObject({ code: 0, err: '' });
    expect((await start()).keys).toHaveLength(2);
  });

  it('refuses the key of the authority, which is not rotated to a log key either', async () => {
    await start();
    const refused = await command('rotate', join(dataDir, 'authority.pem'));
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toMatch(/^ledger-trust: A key of the authority never signs checkpoints: [^\n]+\n$/);
    const crossed = await runHere(['authority', 'rotate', join(dataDir, 'log.pem')], { env: { DATA_DIR: dataDir } });
    expect(crossed).toMatchObject({ code: 1, out: '' });
    expect(crossed.err).toMatch(/^ledger-trust: \S+log\.pem signs checkpoints: [^\n]+\n$/);
  });

  it('refuses a directory that no node has served, and a file that is no key', async () => {
    expect(await command('rotate', nextKey)).toMatchObject({ code: 1, err: expect.stringContaining('no file FORMAT') });
    expect(existsSync(dataDir)).toBe(false);
    await start();
    const refused = await command('rotate', join(dataDir, 'secrets.key'));
    expect(refused).toMatchObject({ code: 66, err: expect.stringMatching(/must be an Ed25519 private key/) });
  });
});

it('refuses a new key that other users may read with the sentence of the start, in production mode alone', async () => {
  await start();
  chmodSync(nextKey, 0o644);
  const env = { ...productionSettings(dir), DATA_DIR: dataDir };
  const sentence = (variable: string) =>
    `ledger-trust: For SVC_MODE=production also close ${variable} to other users (chmod 600 ${nextKey}).\n`;
  for (const [args, variable] of [
    [['log', 'rotate', nextKey], 'LOG_KEY_FILE'],
    [['log', 'new-origin', 'ledger.example/v2', '--key', nextKey], 'LOG_KEY_FILE'],
    [['authority', 'rotate', nextKey], 'AUTHORITY_KEY_FILE'],
  ] as const)
    expect(await runHere(args, { env })).toMatchObject({ out: '', err: sentence(variable) });
  expect(() => readConfig({ ...env, LOG_KEY_FILE: nextKey })).toThrow(
    sentence('LOG_KEY_FILE').replace(/^ledger-trust: |\n$/g, ''),
  );
  expect((await command('rotate', nextKey)).code).toBe(0);
});

it('a backup names the keys that it copies', async () => {
  await start();
  const { out } = await runHere(['backup', join(dir, `copy-${count}`)], { env: { DATA_DIR: dataDir } });
  expect(out).toContain(' with the keys authority.pem, secrets.key and log.pem: keep it as secret as these.');
});

describe('log keep', () => {
  it('removes the mark of a copy, and changes nothing else', async () => {
    const before = await start();
    writeFileSync(copyMark(), '');
    const kept = await command('keep');
    expect(kept).toMatchObject({ code: 0, err: '' });
    expect(kept.out).toContain('counts as the original');
    expect(existsSync(copyMark())).toBe(false);
    expect((await start()).serviceName).toBe(before.serviceName);
    expect((await command('keep')).out).toContain('is not marked as a copy');
  });
});

describe('log new-origin', () => {
  it('moves the store to the new name and key, and removes the mark of a copy', async () => {
    const before = await start();
    writeFileSync(copyMark(), '');
    const { code, out, err } = await command('new-origin', 'ledger.example/v1', '--key', nextKey);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('ledger.example/v1');
    expect(existsSync(copyMark())).toBe(false);
    const after = await start();
    expect(after.serviceName).toBe('ledger.example/v1');
    expect(after.publicKey).toEqual(Buffer.from(publicKeyIn(nextKey), 'base64'));
    expect(after.previous.map(({ origin }) => origin)).toEqual([before.serviceName]);
    const again = await command('new-origin', before.serviceName);
    expect(again).toMatchObject({ code: 1, out: '' });
    expect(again.err).toMatch(/^ledger-trust: \S+ is a name that this store has had: [^\n]+\n$/);
  });

  it('refuses what is no name', async () => {
    await start();
    for (const name of ['https://ledger.example', 'Ledger.example', ''])
      expect(await command('new-origin', name)).toMatchObject({
        code: 64,
        err: expect.stringContaining('is no name of a service'),
      });
  });
});
