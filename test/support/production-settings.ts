import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A new Ed25519 private key, PKCS#8 PEM, in a file that only its owner may read. Returns the path. */
export function newKeyFile(directory: string, name: string): string {
  return secretFile(
    directory,
    name,
    generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }),
  );
}

/** All that production mode requires of a node behind a TLS proxy, with new keys in files of this directory. */
export function productionSettings(directory: string) {
  return {
    SVC_MODE: 'production',
    AUTHORITY_KEY_FILE: newKeyFile(directory, 'authority.pem'),
    SECRETS_KEY_FILE: secretFile(directory, 'secrets.key', randomBytes(32).toString('base64')),
    LOG_ORIGIN: 'ledger.example/v1',
    LOG_KEY_FILE: newKeyFile(directory, 'log.pem'),
    TLS_TERMINATED: '1',
    OPS_HOST: '127.0.0.1',
  };
}

function secretFile(directory: string, name: string, text: string | Buffer): string {
  const path = join(directory, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}
