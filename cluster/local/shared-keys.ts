import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { authorityKeyName, readNodeKeys, secretsKeyName } from '../../src/node-keys.ts';

const clusterSecretName = 'cluster.secret';
const secretBytes = 32;

/** What all nodes of one cluster have alike, as variables of their environment. */
export interface SharedKeys {
  readonly AUTHORITY_KEY_FILE: string;
  readonly SECRETS_KEY_FILE: string;
  readonly CLUSTER_SECRET_FILE: string;
}

/**
 * The authority's key, the secrets key and the nodes' secret in `dir`; each is made where it is not there yet and never
 * replaced, so that it may be asked for by several at once and again.
 */
export function sharedKeys(dir: string): SharedKeys {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  readNodeKeys({ authorityKeyFile: null, secretsKeyFile: null, dataDir: dir });
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
    CLUSTER_SECRET_FILE: secret,
  };
}
