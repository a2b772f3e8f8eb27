import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readAuthorityKey, readAuthorityKeys } from '../service/authority/authority.ts';
import { SECRETS_KEY_BYTES } from '../service/records/secret-box.ts';
import { hasSecretsKey } from '../service/records/secrets-key-check.ts';
import type { RecordStore } from '../store/record-store.ts';
import { type Config, ConfigError } from './config.ts';

export interface NodeKeys {
  readonly authority: KeyObject;
  readonly secrets: Buffer;
}

/** File names of the keys that a development node makes on first start. */
export const authorityKeyName = 'authority.pem';
export const secretsKeyName = 'secrets.key';

/** Whether a store depends on a key, so that no other will do. */
interface KeysInUse {
  readonly authority: boolean;
  readonly secrets: boolean;
}

export async function keysInUse(records: RecordStore): Promise<KeysInUse> {
  return { authority: (await readAuthorityKeys(records)).length > 0, secrets: await hasSecretsKey(records) };
}

type KeyFiles = Pick<Config, 'authorityKeyFile' | 'secretsKeyFile' | 'dataDir'>;

/**
 * Reads the keys that the configuration names, or those in the data directory. The latter are made if they are missing
 * and not in use. Throws ConfigError, and has made nothing then. A new file is complete or absent.
 */
export function readNodeKeys(config: KeyFiles, inUse: KeysInUse = { authority: false, secrets: false }): NodeKeys {
  const authority = config.authorityKeyFile ?? join(config.dataDir, authorityKeyName);
  const secrets = config.secretsKeyFile ?? join(config.dataDir, secretsKeyName);
  if (inUse.authority && config.authorityKeyFile === null) refuseLost(authority, 'AUTHORITY_KEY_FILE', 'sealed');
  if (inUse.secrets && config.secretsKeyFile === null) refuseLost(secrets, 'SECRETS_KEY_FILE', 'encrypted');
  if (config.authorityKeyFile === null) makeOnce(authority, newAuthorityKey);
  if (config.secretsKeyFile === null) makeOnce(secrets, newSecretsKey);
  return { authority: authorityKey(authority), secrets: secretsKey(secrets) };
}

/** With a new key nothing in the store could be read or sealed. */
function refuseLost(file: string, variable: string, verb: string): void {
  if (existsSync(file)) return;
  throw new ConfigError(
    `${file} is missing, the key that the data beside it was ${verb} with: restore it from the backup, or set ${variable} to a copy of it.`,
  );
}

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

function makeOnce(file: string, make: () => string): void {
  // Checked first, because a node must also start on a full disk, for reads.
  if (existsSync(file)) return;
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
