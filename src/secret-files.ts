import { statSync } from 'node:fs';

/** Group may read: Kubernetes gives a secret to a process that is not root through its group (`fsGroup`). */
const openBits = 0o026;

/**
 * Of files named by variables those that others than their owner can write, or others than owner and group can read, each with what mends it.
 * What cannot be looked at is left to who reads it.
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
