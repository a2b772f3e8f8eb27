import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openAuthority, rotateAuthority } from '../../../src/service/authority/authority.ts';
import { openLmdb } from '../../../src/store/lmdb/open.ts';
import { newSigningKey } from '../../support/log-stores.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { dir } = newShell();

async function rotates(DATA_DIR: string) {
  const key = join(dir, 'next.pem');
  if (!existsSync(key)) await runHere(['keygen', '--out', key]);
  return runHere(['authority', 'rotate', key], { env: { DATA_DIR } });
}

it('an authority is not rotated where there is no data directory, and none is made', async () => {
  const missing = join(dir, 'nowhere', 'data');
  expect(await rotates(missing)).toEqual({
    code: 1,
    out: '',
    err: `ledger-trust: ${missing} has no file FORMAT: it is no data directory of this service; check DATA_DIR.\n`,
  });
  expect(existsSync(join(dir, 'nowhere'))).toBe(false);
  const empty = join(dir, 'empty');
  mkdirSync(empty);
  expect((await rotates(empty)).code).toBe(1);
  expect(readdirSync(empty)).toEqual([]);
});

it('an authority is not rotated where no node has sealed with one, and no key is made', async () => {
  const dataDir = join(dir, 'new');
  await (await openLmdb({ dataDir, now: Date.now, onFatal: () => {} }))[Symbol.asyncDispose]();
  const { code, out, err } = await rotates(dataDir);
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toMatch(/^ledger-trust: \S+ has no authority yet: [^\n]+\n$/);
  expect(readdirSync(dataDir).filter((name) => /\.(pem|key)/.test(name))).toEqual([]);
});

it('a rotation of a version before 0.2.0 that broke off is confirmed with the new key, and then finished', async () => {
  const dataDir = join(dir, 'rotated');
  const own = join(dataDir, 'authority.pem');
  const next = join(dir, 'rotated.pem');
  {
    await using stores = await openLmdb({ dataDir, now: Date.now, onFatal: () => {} });
    const [oldKey, newKey] = [newSigningKey(), newSigningKey()];
    for (const [file, key] of [
      [own, oldKey],
      [next, newKey],
    ] as const)
      writeFileSync(file, key.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
    const { records } = stores;
    await openAuthority(records, oldKey, '2026-11-01T00:00:00.000Z');
    await rotateAuthority(records, oldKey, newKey, '2026-11-02T00:00:00.000Z');
    const { value = '', version = '' } = (await records.get('authority', 'keys')) ?? {};
    const { keys } = JSON.parse(value);
    const unsigned = { kind: 'authority', id: 'keys', replaces: version, value: JSON.stringify({ keys }), lookups: [] };
    expect(await records.put(unsigned)).toMatchObject({ ok: true });
  }
  const run = (args: readonly string[], key?: string) =>
    runHere(['authority', ...args], {
      env: { DATA_DIR: dataDir, ...(key === undefined ? {} : { AUTHORITY_KEY_FILE: key }) },
    });
  expect(await run(['rotate', next])).toMatchObject({ code: 1, err: expect.stringContaining('authority confirm') });
  expect(await run(['confirm'])).toMatchObject({ code: 1, err: expect.stringContaining('such as NEW.pem of a') });
  const { code, out } = await run(['confirm'], next);
  expect(code).toBe(0);
  const digest = out.trim().split('\n').at(-1) ?? '';
  expect(await run(['confirm', digest], next)).toMatchObject({ code: 0, err: '' });
  expect(await run(['rotate', next])).toMatchObject({ code: 0, err: '' });
  expect(readFileSync(own, 'utf8')).toBe(readFileSync(next, 'utf8'));
});
