import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../start-error.ts';
import { dataFile } from './data-file.ts';

/** Number of the layout in tables.ts and keys.ts. Another layout, another number. */
const FORMAT = 1;
const NAME = 'FORMAT';
const FORM = /^ledger-trust data, format ([1-9][0-9]*)\n$/;

/**
 * Makes sure that the directory is of this format, as a readable file FORMAT says; an empty directory becomes one.
 * StartError for any other.
 */
export function claimFormat(directory: string): void {
  const path = join(directory, NAME);
  if (existsSync(path)) {
    checkFormat(directory);
    return;
  }
  if (existsSync(join(directory, dataFile)))
    throw new StartError(
      `${directory} holds data but no file ${NAME}: it is an unfinished backup or not this service's data; name another DATA_DIR, or finish the backup.`,
    );
  writeFormat(directory);
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

/** Durable when it returns: written beside, flushed, renamed. */
export function writeFormat(directory: string): void {
  const path = join(directory, NAME);
  const draft = `${path}.new`;
  writeFileSync(draft, `ledger-trust data, format ${FORMAT}\n`, { mode: 0o600 });
  flush(draft);
  renameSync(draft, path);
  flush(directory);
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
