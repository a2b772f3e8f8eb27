import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Config, ConfigError } from './config.ts';
import { SECRETS_KEY_BYTES } from './service/secret-box.ts';
import { readAuthorityKey } from './service/signatures/authority.ts';

/** The two private keys of a node. */
export interface NodeKeys {
  readonly authority: KeyObject;
  readonly secrets: Buffer;
}

/** Where a development node keeps the keys that it makes on first start. */
export const authorityKeyName = 'authority.pem';
export const secretsKeyName = 'secrets.key';

/**
 * Reads the keys named by the configuration, or those of the data directory, which are made if they are not there. Throws ConfigError.
 * A file that was made is whole or not there at all, whenever the process dies.
 */
export function readNodeKeys(config: Pick<Config, 'authorityKeyFile' | 'secretsKeyFile' | 'dataDir'>): NodeKeys {
  const authority = config.authorityKeyFile ?? madeOnce(join(config.dataDir, authorityKeyName), newAuthorityKey);
  const secrets = config.secretsKeyFile ?? madeOnce(join(config.dataDir, secretsKeyName), newSecretsKey);
  return { authority: authorityKey(authority), secrets: secretsKey(secrets) };
}

/** Reads an authority key for AUTHORITY_KEY_FILE. Throws ConfigError. */
export function authorityKey(file: string): KeyObject {
  try {
    return readAuthorityKey(readFileSync(file));
  } catch (error) {
    throw new ConfigError(
      `Set AUTHORITY_KEY_FILE to an Ed25519 private key in PKCS#8 PEM; ${file} is none (${reason(error)}).`,
    );
  }
}

function secretsKey(file: string): Buffer {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new ConfigError(
      `Set SECRETS_KEY_FILE to a file of 32 bytes in base64; ${file} cannot be read (${reason(error)}).`,
    );
  }
  const key = Buffer.from(text, 'base64');
  if (key.length !== SECRETS_KEY_BYTES || key.toString('base64') !== text) {
    throw new ConfigError(`Set SECRETS_KEY_FILE to a file of 32 bytes in base64; ${file} holds something else.`);
  }
  return key;
}

function newAuthorityKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function newSecretsKey(): string {
  return `${randomBytes(SECRETS_KEY_BYTES).toString('base64')}\n`;
}

function madeOnce(file: string, make: () => string): string {
  const draft = `${file}.${process.pid}`;
  const handle = openSync(draft, 'w', 0o600);
  try {
    writeSync(handle, make());
    fsyncSync(handle);
    linkSync(draft, file);
    syncDirectory(dirname(file));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    closeSync(handle);
    rmSync(draft, { force: true });
  }
  return file;
}

function syncDirectory(directory: string): void {
  const handle = openSync(directory, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error ? String(error.code) : error.message;
}
