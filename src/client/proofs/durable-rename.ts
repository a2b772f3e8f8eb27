import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Codes where a folder cannot be synced: on Windows, on some mounts, or because this user may not read it. */
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
