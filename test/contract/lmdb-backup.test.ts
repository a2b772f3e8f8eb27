import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { StartError } from '../../src/runtime/start-error.ts';
import { backupLmdb } from '../../src/store/lmdb/backup.ts';
import { checkDataFile } from '../../src/store/lmdb/file/data-file.ts';
import { childLedgers, countBatches } from '../support/store-lmdb-batches.ts';
import { acknowledged, startChild } from '../support/store-lmdb-process.ts';
import { madeDataDir, newDataDir, openDir, openOnce } from './lmdb-factory.ts';

const ROUNDS = 4;

describe('backup', () => {
  test('copies every answered append and no partial one while a process appends', async () => {
    const dataDir = await newDataDir();
    await using child = startChild(['append', dataDir]);
    let acks = 100;
    for (let round = 0; round < ROUNDS; round++, acks += 300) {
      await child.line('ack', acks);
      const before = acknowledged(child.lines);
      const target = join(dataDir, '..', `backup-${round}`);
      await backupLmdb(dataDir, target);
      const after = acknowledged(child.lines);
      await using copy = await openDir(target);
      for (const ledgerId of childLedgers) {
        const batches = await countBatches(copy.ledgers, ledgerId);
        expect(batches).toBeGreaterThanOrEqual(before.get(ledgerId) ?? 0);
        expect(batches).toBeLessThanOrEqual((after.get(ledgerId) ?? 0) + 1);
      }
      // The copy is a store of its own.
      const claim = await copy.ledgers.claim(childLedgers[0] ?? '');
      expect(await copy.ledgers.stands(claim, claim.head)).toBe(true);
    }
    expect(child.lines.some((line) => line.startsWith('fatal'))).toBe(false);
  }, 60_000);

  test('contains tiles and signed heads', async () => {
    const dataDir = await newDataDir();
    const target = join(dataDir, '..', 'with-trees');
    const hashes = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    const [root = Buffer.alloc(0)] = hashes;
    await using stores = await openDir(dataDir);
    await stores.tiles.putHashes('origin', 1, 0, hashes);
    await stores.signedHeads.raise('origin', 7, root);
    await backupLmdb(dataDir, target);
    await using copy = await openDir(target);
    expect(await copy.tiles.tile('origin', 1, 0)).toEqual(hashes);
    expect(await copy.signedHeads.get('origin')).toEqual({ size: 7, root });
  });

  test('is readable by its user only, also in a public directory', async () => {
    const dataDir = await madeDataDir();
    const [made, found] = [join(dataDir, '..', 'made'), join(dataDir, '..', 'found')];
    await mkdir(found);
    await chmod(found, 0o755);
    const maskBefore = process.umask();
    for (const target of [made, found]) {
      const watched = async (copied: Promise<void>) => {
        await copied;
        expect((await stat(join(target, 'data.mdb'))).mode & 0o777).toBe(0o600);
      };
      await backupLmdb(dataDir, target, [], watched);
      for (const name of ['data.mdb', 'FORMAT'])
        expect([name, (await stat(join(target, name))).mode & 0o777]).toEqual([name, 0o600]);
    }
    expect([(await stat(made)).mode & 0o777, (await stat(found)).mode & 0o777]).toEqual([0o700, 0o755]);
    expect(process.umask()).toBe(maskBefore);
  });

  test('fails with a sentence if LMDB refuses the copy', async () => {
    const dataDir = await madeDataDir();
    // The directory can be made, and the path of a file in it is longer than paths may be.
    const pathMax = process.platform === 'darwin' ? 1_024 : 4_096;
    let target = join(dataDir, '..');
    while (target.length < pathMax - 4) target = join(target, 'd'.repeat(Math.min(100, pathMax - 3 - target.length)));
    const late = async (copied: Promise<void>) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      await copied;
    };
    const refused = backupLmdb(dataDir, target, [], late);
    await expect(refused).rejects.toBeInstanceOf(StartError);
    await expect(refused).rejects.toThrow(/could not be copied to .*: .+\.$/);
  });

  test('accepts a file that grows during the look', async () => {
    const dataDir = await newDataDir();
    await using child = startChild(['append', dataDir]);
    for (let acks = 1; acks <= 1_500; acks++) {
      await child.line('ack', acks);
      for (let look = 0; look < 20; look++) checkDataFile(dataDir);
    }
  }, 60_000);

  test('reports its progress', async () => {
    const dataDir = await madeDataDir();
    const shares: number[] = [];
    await backupLmdb(dataDir, join(dataDir, '..', 'watched'), [], async (copied, share) => {
      shares.push(share());
      await copied;
      shares.push(share());
    });
    expect(shares[0]).toBeLessThanOrEqual(1);
    expect(shares[1]).toBe(1);
  });

  test('copies the other files before it counts as complete, readable by its owner only', async () => {
    const dataDir = await madeDataDir();
    const target = join(dataDir, '..', 'with-key');
    await writeFile(join(dataDir, 'key'), 'secret', { mode: 0o644 });
    expect(await backupLmdb(dataDir, target, ['key', 'none'])).toEqual(['key']);
    expect([await readFile(join(target, 'key'), 'utf8'), (await stat(join(target, 'key'))).mode & 0o777]).toEqual([
      'secret',
      0o600,
    ]);
    // It cannot be copied: a directory.
    await mkdir(join(dataDir, 'broken'));
    const half = join(dataDir, '..', 'half');
    await expect(backupLmdb(dataDir, half, ['key', 'broken'])).rejects.toThrow();
    expect(existsSync(join(half, 'FORMAT'))).toBe(false);
  });

  test('refuses a target that is not empty and leaves it unchanged', async () => {
    const dataDir = await madeDataDir();
    const target = join(dataDir, '..', 'target');
    await mkdir(target);
    await writeFile(join(target, 'note'), 'mine');
    await expect(backupLmdb(dataDir, target)).rejects.toThrow(/is not empty/);
    await expect(backupLmdb(dataDir, dataDir)).rejects.toThrow(/is not empty/);
    expect(await readdir(target)).toEqual(['note']);
    await rm(join(target, 'note'));
    await backupLmdb(dataDir, target);
    await openOnce(target);
  });

  test('refuses a source of another format and makes no target', async () => {
    const dataDir = await newDataDir();
    const target = join(dataDir, '..', 'target');
    await expect(backupLmdb(dataDir, target)).rejects.toBeInstanceOf(StartError);
    await mkdir(dataDir);
    await expect(backupLmdb(dataDir, target)).rejects.toThrow(/has no file FORMAT/);
    await writeFile(join(dataDir, 'FORMAT'), 'ledger-trust data, format 2\n');
    await expect(backupLmdb(dataDir, target)).rejects.toThrow(/format 2/);
    await writeFile(join(dataDir, 'FORMAT'), 'ledger-trust data, format 1\n');
    await expect(backupLmdb(dataDir, target)).rejects.toThrow(/data\.mdb is missing, though data was made in/);
    expect(existsSync(target)).toBe(false);
  });

  test('is incomplete if it was broken off', async () => {
    const dataDir = await madeDataDir();
    const target = join(dataDir, '..', 'target');
    await backupLmdb(dataDir, target);
    await rm(join(target, 'FORMAT'));
    await expect(openDir(target)).rejects.toThrow(/unfinished backup/);
  });
});
