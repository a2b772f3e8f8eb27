import { closeSync, fstatSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../../runtime/start-error.ts';

export const dataFile = 'data.mdb';

/** Offsets in a meta page of LMDB: MDB_meta of mdb.c after a page header of 24 bytes, little-endian. */
const MAGIC_AT = 0x18;
const MAGIC = 0xbeefc0de;
const VERSION_AT = 0x1c;
const VERSION = 2;
const PAGE_SIZE_AT = 0x30;
/** Offsets of the root page numbers of two trees: that of free pages and that of tables. */
const ROOTS_AT = [0x58, 0x88];
const NO_ROOT = 0xffff_ffff_ffff_ffffn;
const TRANSACTION_AT = 0x98;
const META_BYTES = 0xa0;
/** A file begins with two meta pages. A shorter file holds no data. */
const UNMADE_BYTES = 2 * 4096;

/**
 * Checks the data file of a directory that must have one. Throws StartError if the file is missing or empty, because
 * LMDB would silently begin a new store there. Throws StartError if the file is not LMDB's, or so short that a root
 * page is cut off, because such a file crashes lmdb-js and with it the process. The length alone proves nothing: LMDB
 * may leave free pages at the end unwritten.
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
 * For a directory in which no store was ever opened. Removes a data file without data, left by a process that was
 * killed while it made the file. Checks a longer file like checkDataFile.
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
    // The size is read after the meta pages: a serving node lets the file grow before a meta page refers to new pages.
    const { size } = fstatSync(file);
    const newest = first.readBigUInt64LE(TRANSACTION_AT) > second.readBigUInt64LE(TRANSACTION_AT) ? first : second;
    const pages = BigInt(size) / BigInt(pageBytes);
    if (pages < 2n) return false;
    return ROOTS_AT.map((at) => newest.readBigUInt64LE(at)).every((root) => root === NO_ROOT || root < pages);
  } finally {
    closeSync(file);
  }
}

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
