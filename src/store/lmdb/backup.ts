import { chmodSync, copyFileSync, existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { open } from 'lmdb';
import { StartError } from '../../runtime/start-error.ts';
import { markCopy } from './file/copy-mark.ts';
import { dataFile } from './file/data-file.ts';
import { checkHoldsData, flush, writeFormat } from './file/format.ts';
import { makeDirectory } from './file/make-directory.ts';
import { readersMax } from './tables.ts';

const blockBytes = 512;

/** Awaits a running copy. `share` returns how much of it is done, 0 to 1. */
export type WatchCopy = (copied: Promise<void>, share: () => number) => Promise<void>;

/**
 * Copies a data directory, also while a node serves it. The copy is a snapshot of one moment after the call: it has
 * every append that was answered before the call, and a prefix of the later ones. The copy is durable when this
 * resolves, and is a data directory itself. Its file FORMAT is written last, so that an unfinished copy can be told
 * from a whole one. Its file COPY says that it is a copy (src/store/store-stamp.ts). Those files of `besides` that
 * exist in `dataDir` are copied too, readable by their owner only. Returns their names.
 *
 * LMDB copies in a read transaction: the node goes on, but cannot reuse space that is freed meanwhile. Call this in
 * another process than the node's. Throws StartError if `targetDir` is not empty, `dataDir` has no data, or LMDB cannot
 * write the copy.
 */
export async function backupLmdb(
  dataDir: string,
  targetDir: string,
  besides: readonly string[] = [],
  watch: WatchCopy = (copied) => copied,
): Promise<readonly string[]> {
  checkHoldsData(dataDir);
  if (existsSync(targetDir) && readdirSync(targetDir).length > 0)
    throw new StartError(`${targetDir} is not empty: name a new or empty directory for the backup.`);
  makeDirectory(targetDir);
  const root = open({ path: dataDir, noSubdir: false, readOnly: true, maxReaders: readersMax });
  // LMDB makes the copy's file readable for all, and has no option for its mode.
  const mask = process.umask(0o077);
  try {
    const bytes = bytesIn(dataDir);
    const copied = root.backup(targetDir, false).catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new StartError(`${dataDir} could not be copied to ${targetDir}: ${why}.`, cause);
    });
    // The copy may fail before `watch` awaits it. `watch` throws the error then; this handler only marks it as handled.
    copied.catch(() => {});
    await watch(copied, () => Math.min(1, bytesIn(targetDir) / bytes));
  } finally {
    process.umask(mask);
    await root.close();
  }
  flush(join(targetDir, dataFile));
  const copied = besides.filter((name) => existsSync(join(dataDir, name)));
  for (const name of copied) {
    const copy = join(targetDir, name);
    copyFileSync(join(dataDir, name), copy);
    chmodSync(copy, 0o600);
    flush(copy);
  }
  markCopy(targetDir);
  writeFormat(targetDir);
  flush(dirname(targetDir));
  return copied;
}

/**
 * The bytes of a data file, 0 while there is none. LMDB writes up to 1 GiB at once: the file's length may show that
 * only at the end, its blocks show it as they are written.
 */
function bytesIn(directory: string): number {
  const file = statSync(join(directory, dataFile), { throwIfNoEntry: false });
  return file === undefined ? 0 : Math.max(file.size, file.blocks * blockBytes);
}
