import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Where a folder cannot be opened or synced: on Windows, on some mounts, or because its owner does not let it be read. */
const unsynced: readonly unknown[] = ['EACCES', 'EPERM', 'EISDIR', 'EINVAL', 'ENOTSUP'];

/** Renames a file whose content is synced. Where folders can be synced, the new name then outlives a crash. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  try {
    await using folder = await open(dirname(to));
    await folder.sync();
  } catch (error) {
    if (!unsynced.includes((error as NodeJS.ErrnoException).code)) throw error;
  }
}
