import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../../runtime/start-error.ts';
import { checkDataFile, dataFile } from './data-file.ts';

/** Number of the layout in tables.ts and keys.ts. Each other layout has another number. */
const FORMAT = 1;
const NAME = 'FORMAT';
const DRAFT = `${NAME}.new`;
const FORM = /^ledger-trust data, format ([1-9][0-9]*)\n$/;

/**
 * Checks that the directory has this format, which its file FORMAT says in plain text, or is new. Returns whether it is
 * new. A new directory gets a draft of FORMAT; call `finishFormat` once the data is there. So FORMAT without data means
 * that data was lost, and a draft without FORMAT means that the first start was interrupted. Throws StartError for any
 * other directory.
 */
export function claimFormat(directory: string): boolean {
  if (existsSync(join(directory, NAME))) {
    checkFormat(directory);
    return false;
  }
  const isBegun = existsSync(join(directory, DRAFT));
  if (!isBegun && existsSync(join(directory, dataFile)))
    throw new StartError(
      `${directory} holds data but no file ${NAME}: it is an unfinished backup or not this service's data; name another DATA_DIR, or finish the backup.`,
    );
  writeDraft(directory);
  flush(directory);
  return true;
}

/** Call it once the data of a new directory is there. Makes FORMAT from its draft, durable when this returns. */
export function finishFormat(directory: string): void {
  flush(join(directory, dataFile));
  flush(directory);
  renameSync(join(directory, DRAFT), join(directory, NAME));
  flush(directory);
}

function checkFormat(directory: string): void {
  const path = join(directory, NAME);
  if (!existsSync(path))
    throw new StartError(`${directory} has no file ${NAME}: it is no data directory of this service; check DATA_DIR.`);
  const found = FORM.exec(readFileSync(path, 'utf8'))?.[1];
  if (found === String(FORMAT)) return;
  throw new StartError(
    `${directory} has data of ${found === undefined ? 'an unknown format' : `format ${found}`}, this version reads format ${FORMAT}: start the version that wrote it, or name another DATA_DIR.`,
  );
}

/** Creates nothing. Throws StartError if the directory does not exist, has another format, or has no data. */
export function checkHoldsData(directory: string): void {
  checkFormat(directory);
  checkDataFile(directory);
}

/** Writes FORMAT beside existing data, atomically. Durable when this returns. */
export function writeFormat(directory: string): void {
  writeDraft(directory);
  finishFormat(directory);
}

function writeDraft(directory: string): void {
  const draft = join(directory, DRAFT);
  writeFileSync(draft, `ledger-trust data, format ${FORMAT}\n`, { mode: 0o600 });
  flush(draft);
}

export function flush(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
