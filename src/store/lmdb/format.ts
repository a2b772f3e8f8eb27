import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../start-error.ts';
import { dataFile } from './data-file.ts';

/** Number of the layout in tables.ts and keys.ts. Another layout, another number. */
const FORMAT = 1;
const NAME = 'FORMAT';
const DRAFT = `${NAME}.new`;
const FORM = /^ledger-trust data, format ([1-9][0-9]*)\n$/;

/**
 * Makes sure that the directory is of this format, as a readable file FORMAT says, or that it is new. Answers whether it is new: then a draft of
 * FORMAT stands there, and `finishFormat` is to be called once there is data. So FORMAT without data is data that was lost, and a draft
 * without FORMAT a first start that was broken off. StartError for any other directory.
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

/** The data of a new directory is made: FORMAT stands beside it, durable when this returns. */
export function finishFormat(directory: string): void {
  flush(join(directory, dataFile));
  flush(directory);
  renameSync(join(directory, DRAFT), join(directory, NAME));
  flush(directory);
}

/** StartError unless FORMAT is there and has this number. */
export function checkFormat(directory: string): void {
  const path = join(directory, NAME);
  if (!existsSync(path))
    throw new StartError(`${directory} has no file ${NAME}: it is no data directory of this service; check DATA_DIR.`);
  const found = FORM.exec(readFileSync(path, 'utf8'))?.[1];
  if (found === String(FORMAT)) return;
  throw new StartError(
    `${directory} has data of ${found === undefined ? 'an unknown format' : `format ${found}`}, this version reads format ${FORMAT}: start the version that wrote it, or name another DATA_DIR.`,
  );
}

/** For data that is there: durable when it returns. Written beside, flushed, renamed. */
export function writeFormat(directory: string): void {
  writeDraft(directory);
  finishFormat(directory);
}

function writeDraft(directory: string): void {
  const draft = join(directory, DRAFT);
  writeFileSync(draft, `ledger-trust data, format ${FORMAT}\n`, { mode: 0o600 });
  flush(draft);
}

/** fsync of a file or directory. */
export function flush(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
