import fs, { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { exitCodes } from '../../../src/cli/terminal/exit-codes.ts';
import { fileSink } from '../../../src/cli/terminal/sink.ts';
import { CliError } from '../../../src/cli/terminal/terminal.ts';
import { suiteDir } from '../../support/running-node.ts';

const dir = suiteDir();

test('a full disk fails an export with a sentence and leaves no file', async () => {
  const path = join(dir, 'export.json');
  const full = Object.assign(new Error('no space left'), { code: 'ENOSPC' });
  const write = vi.spyOn(fs, 'write').mockImplementation((...args: unknown[]) => {
    (args.at(-1) as (error: Error) => void)(full);
  });
  try {
    const sink = await fileSink(path);
    // The first line is taken; the write fails when nobody waits for one.
    await expect(
      (async () => {
        for (let line = 0; line < 1_000; line++) {
          await sink.write(`line ${line}`);
          await setImmediate();
        }
      })(),
    ).rejects.toMatchObject({
      message: `${path} cannot be written: the disk is full.`,
      exitCode: exitCodes.writeFailed,
    });
    await expect(sink.keep()).rejects.toThrow(CliError);
    await sink[Symbol.asyncDispose]();
  } finally {
    write.mockRestore();
  }
  expect(readdirSync(dir).filter((name) => name.startsWith('export.json'))).toEqual([]);
});

test('two commands that write to one path each write a whole file, which only the owner may read', async () => {
  const path = join(dir, 'twice.jsonl');
  // What a killed command, or somebody else, has left.
  const other = join(dir, 'other');
  writeFileSync(other, 'of somebody else');
  symlinkSync(other, `${path}.part`);
  await using first = await fileSink(path);
  await first.write('first 1');
  await using second = await fileSink(path);
  await second.write('second 1');
  await first.write('first 2');
  await first.keep();
  expect(readFileSync(path, 'utf8')).toBe('first 1\nfirst 2\n');
  await second.keep();
  expect(readFileSync(path, 'utf8')).toBe('second 1\n');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(other, 'utf8')).toBe('of somebody else');
});

test('a kept file outlives a crash: its folder is synced once it has its name', async () => {
  const path = join(dir, 'durable.jsonl');
  await using sink = await fileSink(path);
  await sink.write('line');
  await using handle = await open(dir);
  const synced: object[] = [];
  const sync = vi.spyOn(Object.getPrototypeOf(handle), 'sync').mockImplementation(async function (this: typeof handle) {
    synced.push({ isFolder: (await this.stat()).ino === statSync(dir).ino, isNamed: existsSync(path) });
  });
  try {
    await sink.keep();
  } finally {
    sync.mockRestore();
  }
  expect(synced).toEqual([{ isFolder: true, isNamed: true }]);
});
