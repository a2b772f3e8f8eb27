import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a directory, its user's alone, and those above it that are missing; one that is there is left as it is. Throws what the file
 * system says. Not mkdir's own `recursive`: Node spins for ever where a parent is there and yet denies that it is (/proc).
 */
export function makeDirectory(path: string): void {
  if (isDirectory(path)) return;
  const above = dirname(path);
  if (statSync(above, { throwIfNoEntry: false }) === undefined) makeDirectory(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Somebody else may have made it in between.
    if (!isDirectory(path)) throw error;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
