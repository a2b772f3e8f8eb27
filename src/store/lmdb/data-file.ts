import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../start-error.ts';

/** LMDB's own name. */
export const dataFile = 'data.mdb';

/** Where LMDB's first meta page says what it is (mdb.c, MDB_meta behind a page header of 24 bytes), little-endian. */
const MAGIC_AT = 0x18;
const MAGIC = 0xbeefc0de;
const VERSION_AT = 0x1c;
const VERSION = 2;
const PAGE_SIZE_AT = 0x30;
const HEADER_BYTES = 0x40;

/**
 * StartError where the data file is there and is none of LMDB's: lmdb-js does not refuse such a file, it crashes the
 * process. An empty one is what a process leaves that was killed while it made the directory; LMDB begins anew on it.
 */
export function checkDataFile(directory: string): void {
  const start = readStart(join(directory, dataFile));
  if (start === null || start.size === 0) return;
  const { size, header } = start;
  const isData =
    header.length === HEADER_BYTES &&
    header.readUInt32LE(MAGIC_AT) === MAGIC &&
    header.readUInt32LE(VERSION_AT) === VERSION &&
    size >= 2 * header.readUInt32LE(PAGE_SIZE_AT);
  if (!isData)
    throw new StartError(
      `${join(directory, dataFile)} is damaged or not this service's: restore a backup, or name another DATA_DIR.`,
    );
}

/** null where there is no such file. */
function readStart(path: string): { readonly size: number; readonly header: Buffer } | null {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new StartError(`${path} cannot be read: check its owner and the disk.`, error);
  }
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    const read = readSync(file, header, 0, HEADER_BYTES, 0);
    return { size: fstatSync(file).size, header: header.subarray(0, read) };
  } finally {
    closeSync(file);
  }
}
