import { closeSync, fstatSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../start-error.ts';

/** LMDB's own name. */
export const dataFile = 'data.mdb';

/** Where a meta page of LMDB says what it is (mdb.c, MDB_meta behind a page header of 24 bytes), little-endian. */
const MAGIC_AT = 0x18;
const MAGIC = 0xbeefc0de;
const VERSION_AT = 0x1c;
const VERSION = 2;
const PAGE_SIZE_AT = 0x30;
/** Numbers of the pages at which the trees of free pages and of tables begin. */
const ROOTS_AT = [0x58, 0x88];
const NO_ROOT = 0xffff_ffff_ffff_ffffn;
const TRANSACTION_AT = 0x98;
const META_BYTES = 0xa0;
/** LMDB begins a file by its two meta pages: what is shorter than these holds nothing. */
const UNMADE_BYTES = 2 * 4096;

/**
 * StartError where a directory whose data was once made has no data file, or an empty one: LMDB would begin a new store on it without a word.
 * StartError also where the file is none of LMDB's, or so short that what everything is found by is cut off: lmdb-js does not refuse such a file, it
 * crashes the process. The length alone does not tell: LMDB may leave free pages at the end unwritten.
 */
export function checkDataFile(directory: string): void {
  const path = join(directory, dataFile);
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? null;
  if (size === null || size === 0)
    throw new StartError(
      `${path} is ${size === null ? 'missing' : 'empty'}, though data was made in ${directory}: restore a backup, or move the directory away to begin with an empty store.`,
    );
  if (!isData(path))
    throw new StartError(`${path} is damaged or not this service's: restore a backup, or name another DATA_DIR.`);
}

/**
 * For a directory in which no store was ever opened: takes away what a process left that was killed while it made the data file. Anything longer
 * is looked at as usual.
 */
export function clearUnmadeData(directory: string): void {
  const path = join(directory, dataFile);
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) return;
  if (size < UNMADE_BYTES) rmSync(path);
  else checkDataFile(directory);
}

function isData(path: string): boolean {
  const file = openData(path);
  try {
    const first = readMeta(file, 0);
    if (first === null) return false;
    const pageBytes = first.readUInt32LE(PAGE_SIZE_AT);
    const second = readMeta(file, pageBytes);
    if (second === null) return false;
    // Looked at behind them: while a node appends the file grows, and never before what its meta pages name.
    const { size } = fstatSync(file);
    const newest = first.readBigUInt64LE(TRANSACTION_AT) > second.readBigUInt64LE(TRANSACTION_AT) ? first : second;
    const pages = BigInt(size) / BigInt(pageBytes);
    if (pages < 2n) return false;
    return ROOTS_AT.map((at) => newest.readBigUInt64LE(at)).every((root) => root === NO_ROOT || root < pages);
  } finally {
    closeSync(file);
  }
}

/** null where no meta page begins there. */
function readMeta(file: number, at: number): Buffer | null {
  const meta = Buffer.alloc(META_BYTES);
  const read = readSync(file, meta, 0, META_BYTES, at);
  const isMeta =
    read === META_BYTES && meta.readUInt32LE(MAGIC_AT) === MAGIC && meta.readUInt32LE(VERSION_AT) === VERSION;
  return isMeta ? meta : null;
}

function openData(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    throw new StartError(`${path} cannot be read: check its owner and the disk.`, error);
  }
}
