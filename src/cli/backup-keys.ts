import { chmodSync, copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { authorityKeyName, secretsKeyName } from '../node-keys.ts';

/** Copies the keys that a development node keeps in its data directory; answers their names. */
export function copyKeys(dataDir: string, target: string): string[] {
  return [authorityKeyName, secretsKeyName].filter((name) => {
    if (!existsSync(join(dataDir, name))) return false;
    copyFileSync(join(dataDir, name), join(target, name));
    chmodSync(join(target, name), 0o600);
    return true;
  });
}
