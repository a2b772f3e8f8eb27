import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { StartError } from '../../src/runtime/start-error.ts';
import { backupLmdb } from '../../src/store/lmdb/backup.ts';
import { checkHoldsData } from '../../src/store/lmdb/file/format.ts';
import { acquireServingLock } from '../../src/store/lmdb/file/serving-lock.ts';
import { openWholeLmdb } from '../../src/store/lmdb/open-whole.ts';
import { openTables } from '../../src/store/lmdb/tables.ts';
import { startChild } from '../support/store-lmdb-process.ts';
import { madeDataDir, newDataDir, openDir, openOnce } from './lmdb-factory.ts';

/** Opening fails with one sentence that has these words. */
async function refused(dataDir: string, words: RegExp): Promise<void> {
  const error: unknown = await openDir(dataDir).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StartError);
  const { message } = error as StartError;
  expect(message).toMatch(words);
  expect(message).toMatch(/^[^.!?]*(\.[^ ][^.!?]*)*\.$/);
}

describe('opening a data directory', () => {
  test('makes a missing directory for its owner only, with its format', async () => {
    const dataDir = join(await newDataDir(), 'deep', 'er');
    await openOnce(dataDir);
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
    expect(await readFile(join(dataDir, 'FORMAT'), 'utf8')).toBe('ledger-trust data, format 1\n');
  });

  test('makes files that only its user can read, also in a public directory', async () => {
    const dataDir = await newDataDir();
    await mkdir(dataDir);
    await chmod(dataDir, 0o755);
    await using stores = await openDir(dataDir);
    await stores.records.put({ kind: 'kind', id: 'id', replaces: 'absent', value: '"ü"', lookups: [] });
    for (const name of ['data.mdb', 'lock.mdb', 'FORMAT'])
      expect([name, (await stat(join(dataDir, name))).mode & 0o777]).toEqual([name, 0o600]);
    expect((await stat(dataDir)).mode & 0o777).toBe(0o755);
  });

  test.each(['v1.0', `long${'x'.repeat(120)}`, 'ünï cödé'])('accepts %s as a directory', async (name) => {
    const dataDir = join(await newDataDir(), name);
    {
      await using stores = await openDir(dataDir);
      await stores.records.put({ kind: 'kind', id: 'id', replaces: 'absent', value: '"ü"', lookups: [] });
      await refused(dataDir, /Another process is serving/);
    }
    expect((await stat(join(dataDir, 'data.mdb'))).isFile()).toBe(true);
    await using stores = await openDir(relative(process.cwd(), dataDir));
    expect(await stores.records.get('kind', 'id')).toMatchObject({ value: '"ü"' });
  });

  test('refuses data of another format with a sentence and leaves it unchanged', async () => {
    const dataDir = await madeDataDir();
    for (const text of ['ledger-trust data, format 2\n', 'ledger-trust data, format 10\n', 'something else', '']) {
      await writeFile(join(dataDir, 'FORMAT'), text);
      await refused(dataDir, /this version reads format 1: start the version that wrote it, or name another DATA_DIR/);
      expect(await readFile(join(dataDir, 'FORMAT'), 'utf8')).toBe(text);
    }
    await writeFile(join(dataDir, 'FORMAT'), 'ledger-trust data, format 1\n');
    await openOnce(dataDir);
  });

  test('makes the tables that data of an older version lacks, also for a command that only reads', async () => {
    const dataDir = await newDataDir();
    const hash = Buffer.alloc(32, 1);
    const asOlder = async () => {
      const tables = openTables(dataDir);
      await Promise.all([tables.tiles.drop(), tables.signedHeads.drop()]);
      await tables.root.close();
    };
    {
      await using stores = await openDir(dataDir);
      await stores.records.put({ kind: 'kind', id: 'id', replaces: 'absent', value: '{}', lookups: [] });
      await stores.tiles.putHashes('origin', 1, 0, [hash]);
    }
    await asOlder();
    {
      await using whole = await openWholeLmdb(dataDir, Date.now);
      expect(whole.whole.size().records).toBe(1);
      expect(await Array.fromAsync(whole.trees.hashes())).toEqual([]);
      expect(await Array.fromAsync(whole.trees.signedHeads())).toEqual([]);
      expect(await whole.signedHeads.get('origin')).toBeNull();
    }
    await asOlder();
    await using stores = await openDir(dataDir);
    expect(await stores.tiles.tile('origin', 1, 0)).toEqual([]);
    await stores.tiles.putHashes('origin', 1, 0, [hash]);
    await stores.signedHeads.raise('origin', 1, hash);
    expect(await stores.tiles.tile('origin', 1, 0)).toEqual([hash]);
  });

  test('for reading only removes no tile', async () => {
    const dataDir = await newDataDir();
    {
      await using stores = await openDir(dataDir);
      await stores.tiles.putHashes('origin', 1, 0, [Buffer.alloc(32, 1)]);
    }
    {
      await using whole = await openWholeLmdb(dataDir, Date.now);
      const [tile] = await Array.fromAsync(whole.trees.hashes());
      await expect(tile?.found.remove()).rejects.toThrow();
    }
    await using stores = await openDir(dataDir);
    expect(await stores.tiles.tile('origin', 1, 0)).toHaveLength(1);
  });

  test.each([
    ['commands-0', 'x'],
    ['commands-1', '1.5'],
    ['access-0', '-2'],
    ['access-1', ''],
    ['commands-0', '1000000001'],
    ['record-versions', 'NaN'],
    ['record-versions', '0'],
  ])('refuses data whose fact %s says "%s", and opens the data when the fact is mended', async (name, value) => {
    const dataDir = await madeDataDir();
    const store = async (text: string) => {
      const tables = openTables(dataDir);
      await tables.facts.put(Buffer.from(name), text);
      await tables.root.close();
    };
    await store(value);
    await refused(dataDir, new RegExp(`The fact ${name} in .* is damaged \\(it says "${value}"\\): restore a backup`));
    {
      // Commands that read all of it go on, so that what is there can be saved.
      await using whole = await openWholeLmdb(dataDir, Date.now);
      expect(whole.whole.size().records).toBe(0);
    }
    await store(name === 'record-versions' ? '1' : '-1');
    await openOnce(dataDir);
  });

  test('refuses data without a format', async () => {
    const dataDir = await madeDataDir();
    await rm(join(dataDir, 'FORMAT'));
    await refused(dataDir, /holds data but no file FORMAT/);
    expect(existsSync(join(dataDir, 'FORMAT'))).toBe(false);
  });

  test('refuses a DATA_DIR that cannot be written', async () => {
    const dataDir = await newDataDir();
    await mkdir(dataDir);
    const file = join(dataDir, 'file');
    await writeFile(file, '');
    await refused(file, /cannot be written to \(EEXIST\): make it a directory/);
    await refused(join(file, 'below'), /cannot be written to \(ENOTDIR\)/);
  });

  test.each(['x', 'x'.repeat(100_000), '\0'.repeat(100_000)])(
    'refuses data that LMDB would crash on (%#)',
    async (text) => {
      const dataDir = await madeDataDir();
      const whole = await readFile(join(dataDir, 'data.mdb'));
      for (const bytes of [Buffer.from(text), ...[100, 4_096, 8_192].map((end) => whole.subarray(0, end))]) {
        await writeFile(join(dataDir, 'data.mdb'), bytes);
        await refused(dataDir, /data\.mdb is damaged or not this service's: restore a backup/);
      }
      await writeFile(join(dataDir, 'data.mdb'), whole);
      await openOnce(dataDir);
    },
  );

  test.each([
    ['missing', (data: string) => rm(data)],
    ['empty', (data: string) => writeFile(data, '')],
  ])('refuses data that is %s beside FORMAT and makes none in its place', async (state, lose) => {
    const dataDir = await madeDataDir();
    const data = join(dataDir, 'data.mdb');
    await lose(data);
    const words = new RegExp(
      `data\\.mdb is ${state}, though data was made in .*: restore a backup, or move the directory away to begin with an empty store\\.$`,
    );
    await refused(dataDir, words);
    await expect(openWholeLmdb(dataDir, Date.now)).rejects.toThrow(words);
    await expect(backupLmdb(dataDir, `${dataDir}-copy`)).rejects.toThrow(words);
    expect(() => checkHoldsData(dataDir)).toThrow(words);
    expect((await stat(data).catch(() => ({ size: 0 }))).size).toBe(0);
    expect(existsSync(`${dataDir}-copy`)).toBe(false);
  });

  test.each([
    ['nothing', null],
    ['no more than a name', 0],
    ['half of what LMDB begins a file with', 4_096],
    ['all its tables', Number.POSITIVE_INFINITY],
  ])('starts again after a first start that was killed when its data had %s', async (_state, bytes) => {
    const dataDir = await madeDataDir();
    const data = join(dataDir, 'data.mdb');
    await rename(join(dataDir, 'FORMAT'), join(dataDir, 'FORMAT.new'));
    if (bytes === null) await rm(data);
    else await writeFile(data, (await readFile(data)).subarray(0, bytes));
    {
      await using stores = await openDir(dataDir);
      await stores.records.put({ kind: 'kind', id: 'id', replaces: 'absent', value: '{}', lookups: [] });
    }
    expect((await readdir(dataDir)).filter((name) => name.startsWith('FORMAT'))).toEqual(['FORMAT']);
    await using again = await openDir(dataDir);
    expect(await again.records.get('kind', 'id')).toMatchObject({ value: '{}' });
  });

  test('refuses a second process while the first one lives, and accepts it after a kill', async () => {
    const dataDir = await newDataDir();
    await using first = startChild(['hold', dataDir]);
    await first.line('open');
    await refused(dataDir, /^Another process is serving .*: stop it first, or give this one a DATA_DIR of its own\.$/);
    await using second = startChild(['hold', dataDir]);
    await expect(second.line('open')).rejects.toThrow(/StartError: Another process is serving/);
    await first.kill();
    await openOnce(dataDir);
    await openOnce(dataDir);
    expect((await readdir(dataDir)).filter((name) => name.endsWith('.sock')).length).toBe(1);
  });

  test('accepts one of ten concurrent starts over a dead lock, repeatedly', async () => {
    const dataDir = await newDataDir();
    await using dead = startChild(['hold', dataDir]);
    await dead.line('open');
    await dead.kill();
    for (let round = 0; round < 20; round++) {
      const starts = await Promise.allSettled(Array.from({ length: 10 }, () => acquireServingLock(dataDir)));
      const opened = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
      expect(opened.length).toBe(1);
      for (const lock of opened) await lock.release();
    }
  });

  test('accepts one of four concurrent processes', async () => {
    const dataDir = await newDataDir();
    const children = Array.from({ length: 4 }, () => startChild(['hold', dataDir]));
    const starts = await Promise.allSettled(children.map((child) => child.line('open')));
    expect(starts.filter(({ status }) => status === 'fulfilled').length).toBe(1);
    for (const child of children) await child.kill();
    await openOnce(dataDir);
  });

  test('gives a record of the next process an unused version', async () => {
    const dataDir = await newDataDir();
    const write = { kind: 'kind', id: 'id', replaces: 'absent', value: '{}', lookups: [] };
    const versions = new Set<string>();
    for (let round = 0; round < 5; round++) {
      await using stores = await openDir(dataDir);
      const put = await stores.records.put(write);
      const version = put.ok ? put.version : '';
      expect(versions.has(version)).toBe(false);
      versions.add(version);
      expect(await stores.records.remove('kind', 'id', version)).toBe(true);
    }
  });

  test('makes every call unavailable after it is closed', async () => {
    const { ledgers, records, [Symbol.asyncDispose]: close } = await openDir(await newDataDir());
    const claim = await ledgers.claim('ledger');
    await close();
    const calls = [
      () => ledgers.claim('ledger'),
      () => ledgers.stands(claim, null),
      () => ledgers.head('ledger'),
      () => ledgers.read('ledger', 0, 1),
      () => ledgers.readScope('ledger', 'scope', { limit: 1 }),
      () => ledgers.findCommands('ledger', [{ id: 'id', permanent: false }]),
      () => ledgers.cell('key'),
      () => ledgers.lines('list', { limit: 1 }),
      () => ledgers.snapshot('ledger'),
      () => records.get('kind', 'id'),
      () => records.find('kind', { name: 'n', value: 'v' }, { limit: 1 }),
      () => records.put({ kind: 'kind', id: 'id', replaces: 'absent', value: '{}', lookups: [] }),
      () => records.remove('kind', 'id', '1'),
      () => records.sweep(1, 1),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'unavailable' });
  });
});
