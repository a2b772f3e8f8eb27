import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Renames a file whose content is synced. When it resolves, the new name outlives a crash. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  // Windows cannot sync a folder.
  if (process.platform === 'win32') return;
  await using folder = await open(dirname(to));
  await folder.sync();
}
