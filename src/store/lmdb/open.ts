import { accessSync, constants } from 'node:fs';
import type { AccessLog } from '../access-log.ts';
import type { LedgerStore } from '../ledger-store.ts';
import type { RecordStore } from '../record-store.ts';
import { StartError } from '../start-error.ts';
import { LmdbAccessLog } from './access-log.ts';
import { Commits } from './commits.ts';
import { checkDataFile, clearUnmadeData } from './data-file.ts';
import { claimFormat, finishFormat } from './format.ts';
import { LmdbLedgerStore } from './ledger-store.ts';
import { makeDirectory } from './make-directory.ts';
import { LmdbRecordStore } from './record-store.ts';
import { acquireServingLock } from './serving-lock.ts';
import { openTables, type Tables } from './tables.ts';

/** After a failed write LMDB may wait for ever for writes that never end; the process is about to end anyway. */
const CLOSE_BROKEN_MS = 1_000;

export interface LmdbOptions {
  readonly dataDir: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** A write failed: nothing can be written any more, and the node should stop. Called once at most. */
  readonly onFatal: (error: Error) => void;
}

/** An embedded node's stores, all in one directory. */
export interface LmdbStores extends AsyncDisposable {
  readonly ledgers: LedgerStore;
  readonly records: RecordStore;
  readonly access: AccessLog;
}

/**
 * Opens DATA_DIR, which is made if it is not there, and keeps every other process from serving it. StartError, with a
 * sentence that says what to do, where it is of another format, in use, cannot be written, or has lost its data.
 */
export async function openLmdb({ dataDir, now, onFatal }: LmdbOptions): Promise<LmdbStores> {
  makeWritable(dataDir);
  const lock = await acquireServingLock(dataDir);
  try {
    const isNew = claimFormat(dataDir);
    if (isNew) clearUnmadeData(dataDir);
    else checkDataFile(dataDir);
    const tables = openExisting(dataDir);
    if (isNew) finishFormat(dataDir);
    const commits = new Commits(onFatal);
    return {
      ledgers: new LmdbLedgerStore(tables, commits, now),
      records: new LmdbRecordStore(tables, commits),
      access: new LmdbAccessLog(tables, commits),
      [Symbol.asyncDispose]: async () => {
        commits.close();
        const closed = tables.root.close();
        await (commits.isBroken ? Promise.race([closed, afterMs(CLOSE_BROKEN_MS)]) : closed);
        await lock.release();
      },
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

function makeWritable(dataDir: string): void {
  try {
    makeDirectory(dataDir);
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new StartError(
      `DATA_DIR ${dataDir} cannot be written to (${codeOf(error)}): make it a directory that this user owns, or name another one.`,
      error,
    );
  }
}

function openExisting(dataDir: string): Tables {
  try {
    return openTables(dataDir);
  } catch (error) {
    throw new StartError(
      `The data in ${dataDir} cannot be opened (${codeOf(error)}): check the disk and the owner of its files, or restore a backup.`,
      error,
    );
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error ? String(error.code) : error.message;
}

function afterMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
