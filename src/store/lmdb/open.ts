import { accessSync, constants } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { StartError } from '../../runtime/start-error.ts';
import type { StoreStamp } from '../store-stamp.ts';
import type { Stores } from '../stores.ts';
import { LmdbAccessLog } from './access/access-log.ts';
import { Commits } from './commits.ts';
import { checkFacts } from './facts.ts';
import { stampOf } from './file/copy-mark.ts';
import { checkDataFile, clearUnmadeData } from './file/data-file.ts';
import { claimFormat, finishFormat } from './file/format.ts';
import { makeDirectory } from './file/make-directory.ts';
import { acquireServingLock, codeOf } from './file/serving-lock.ts';
import { LmdbLedgerStore } from './log/ledger-store.ts';
import { LmdbRecordStore } from './records/record-store.ts';
import { openTables, type Tables } from './tables.ts';
import { LmdbSignedHeads } from './trees/signed-heads.ts';
import { LmdbTileStore } from './trees/tile-store.ts';

/** How long closing waits after a failed write, ms. LMDB may then wait for ever for writes that never end. */
const CLOSE_BROKEN_MS = 1_000;

interface LmdbOptions {
  readonly dataDir: string;
  readonly now: () => number;
  /** Called at most once, after a failed write. Nothing can be written any more, and the node should stop. */
  readonly onFatal: (error: Error) => void;
}

export interface LmdbStores extends Stores, AsyncDisposable {
  readonly stamp: StoreStamp;
  /** False from the first failed write on. */
  isWritable(): boolean;
}

/**
 * Opens DATA_DIR and prevents every other process from serving it. Makes the directory if it does not exist. Throws
 * StartError if it has another format, is in use, cannot be written, or has lost its data.
 */
export async function openLmdb({ dataDir, now, onFatal }: LmdbOptions): Promise<LmdbStores> {
  makeWritable(dataDir);
  const lock = await acquireServingLock(dataDir);
  try {
    const isNew = claimFormat(dataDir);
    if (isNew) clearUnmadeData(dataDir);
    else checkDataFile(dataDir);
    const tables = await openExisting(dataDir);
    if (isNew) finishFormat(dataDir);
    const commits = new Commits(onFatal);
    return {
      ...storesIn(tables, commits, now),
      stamp: stampOf(dataDir),
      isWritable: () => !commits.isBroken,
      [Symbol.asyncDispose]: async () => {
        commits.close();
        const closed = tables.root.close();
        await (commits.isBroken ? Promise.race([closed, setTimeout(CLOSE_BROKEN_MS)]) : closed);
        await lock.release();
        // The process may end once its store is closed.
        await commits.reported();
      },
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

export function storesIn(tables: Tables, commits: Commits, now: () => number): Stores {
  return {
    ledgers: new LmdbLedgerStore(tables, commits, now),
    records: new LmdbRecordStore(tables, commits),
    access: new LmdbAccessLog(tables, commits),
    tiles: new LmdbTileStore(tables, commits),
    signedHeads: new LmdbSignedHeads(tables, commits),
  };
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

async function openExisting(dataDir: string): Promise<Tables> {
  const tables = openOrRefuse(dataDir);
  try {
    checkFacts(dataDir, tables);
    return tables;
  } catch (error) {
    await tables.root.close();
    throw error;
  }
}

function openOrRefuse(dataDir: string): Tables {
  try {
    return openTables(dataDir);
  } catch (error) {
    throw new StartError(
      `The data in ${dataDir} cannot be opened (${codeOf(error)}): check the disk and the owner of its files, or restore a backup.`,
      error,
    );
  }
}
