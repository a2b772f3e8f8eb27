import { chmodSync, copyFileSync, existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { open } from 'lmdb';
import { StartError } from '../start-error.ts';
import { checkDataFile, dataFile } from './data-file.ts';
import { checkFormat, flush, writeFormat } from './format.ts';
import { makeDirectory } from './make-directory.ts';
import { readersMax } from './tables.ts';

/** What `stat` counts in. */
const blockBytes = 512;

/** Awaits a copy that is under way; `share` says how much of it is there, from 0 to 1. */
export type WatchCopy = (copied: Promise<void>, share: () => number) => Promise<void>;

/**
 * Copies the data of a directory, while a node may be serving it, as of one moment after the call: every append
 * answered before the call is in it, and of what is appended meanwhile a prefix. The copy is durable when this resolves,
 * and is a data directory itself; its file FORMAT comes last, so a copy that was broken off is told from a whole one. Files of `besides` that stand
 * beside the data are copied too, for their owner alone; answers their names.
 *
 * LMDB copies under a read transaction: the node is not stopped, but cannot use space again that is freed meanwhile.
 * To be called in another process than the node's. StartError where `targetDir` holds anything, `dataDir` is no data, or LMDB
 * cannot write the copy.
 */
export async function backupLmdb(
  dataDir: string,
  targetDir: string,
  besides: readonly string[] = [],
  watch: WatchCopy = (copied) => copied,
): Promise<readonly string[]> {
  checkFormat(dataDir);
  checkDataFile(dataDir);
  if (existsSync(targetDir) && readdirSync(targetDir).length > 0)
    throw new StartError(`${targetDir} is not empty: name a new or empty directory for the backup.`);
  makeDirectory(targetDir);
  const root = open({ path: dataDir, noSubdir: false, readOnly: true, maxReaders: readersMax });
  // LMDB makes the copy's file for all to read, and takes no mode for it.
  const mask = process.umask(0o077);
  try {
    const bytes = bytesIn(dataDir);
    const copied = root.backup(targetDir, false).catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new StartError(`${dataDir} could not be copied to ${targetDir}: ${why}.`, cause);
    });
    // A refusal may come before `watch` awaits it, and is thrown there all the same.
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
  writeFormat(targetDir);
  flush(dirname(targetDir));
  return copied;
}

/**
 * Of the data there; a copy's file is made by LMDB at some time after the call. It writes up to 1 GiB at once, which a file's length may
 * show at the end alone, and its blocks as they come.
 */
function bytesIn(directory: string): number {
  const file = statSync(join(directory, dataFile), { throwIfNoEntry: false });
  return file === undefined ? 0 : Math.max(file.size, file.blocks * blockBytes);
}
