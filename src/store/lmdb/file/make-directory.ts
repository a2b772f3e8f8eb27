import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a directory and its missing parents, accessible to their owner only. Leaves an existing directory as it is.
 * Throws the error of the file system. It does not use mkdir's `recursive`, because Node then loops for ever if a
 * parent exists and the file system still denies that it exists (/proc).
 */
export function makeDirectory(path: string): void {
  if (isDirectory(path)) return;
  const above = dirname(path);
  if (statSync(above, { throwIfNoEntry: false }) === undefined) makeDirectory(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!isDirectory(path)) throw error;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
