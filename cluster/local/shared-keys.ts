import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { authorityKeyName, logKeyName, readNodeKeys, secretsKeyName } from '../../src/node/node-keys.ts';

const clusterSecretName = 'cluster.secret';
const secretBytes = 32;

/** The variables whose files all nodes of a cluster share. */
export interface SharedKeys {
  readonly AUTHORITY_KEY_FILE: string;
  readonly SECRETS_KEY_FILE: string;
  readonly LOG_KEY_FILE: string;
  readonly CLUSTER_SECRET_FILE: string;
}

/** Returns the files of the shared keys in `dir`. Creates missing ones, also if several processes run at once. */
export function sharedKeys(dir: string): SharedKeys {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  readNodeKeys({ authorityKeyFile: null, secretsKeyFile: null, logKeyFile: null, dataDir: dir });
  const secret = join(dir, clusterSecretName);
  const draft = `${secret}.${process.pid}`;
  writeFileSync(draft, `${randomBytes(secretBytes).toString('base64url')}\n`, { mode: 0o600 });
  try {
    linkSync(draft, secret);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return {
    AUTHORITY_KEY_FILE: join(dir, authorityKeyName),
    SECRETS_KEY_FILE: join(dir, secretsKeyName),
    LOG_KEY_FILE: join(dir, logKeyName),
    CLUSTER_SECRET_FILE: secret,
  };
}
