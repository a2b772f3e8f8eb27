import { type Environment, readConfig } from '../config.ts';
import { authorityKeyName, secretsKeyName } from '../node-keys.ts';
import { backupLmdb } from '../store/lmdb/backup.ts';

/**
 * `ledger-trust backup DIR`: copies the data of DATA_DIR, of a node that may be running, and the keys that the node made for itself.
 * The copy is a data directory: start a node with DATA_DIR=DIR.
 */
export async function backup(env: Environment, target: string): Promise<string> {
  const { dataDir } = readConfig({ ...env, SVC_MODE: 'development' });
  const keys = await backupLmdb(dataDir, target, [authorityKeyName, secretsKeyName]);
  const kept = keys.length === 0 ? '' : ` with the keys ${keys.join(' and ')}: keep it as secret as these`;
  return `Copied ${dataDir} to ${target}${kept}.`;
}
