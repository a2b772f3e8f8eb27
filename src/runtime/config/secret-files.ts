import { statSync } from 'node:fs';

/** The group may read: Kubernetes gives a secret to a process that is not root through its group (`fsGroup`). */
const openBits = 0o026;

/**
 * Finds files that others than the owner can write, or that users outside of owner and group can read. Returns a
 * sentence for each that says what to do. Files that cannot be examined are skipped: the code that reads them reports
 * that.
 */
export function openSecretFiles(files: readonly (readonly [variable: string, file: string | null])[]): string[] {
  return files
    .filter(([, file]) => file !== null && isOpen(file))
    .map(([variable, file]) => `close ${variable} to other users (chmod 600 ${file})`);
}

function isOpen(file: string): boolean {
  try {
    return (statSync(file).mode & openBits) !== 0;
  } catch {
    return false;
  }
}
