import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openLmdb } from '../../../src/store/lmdb/open.ts';
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
