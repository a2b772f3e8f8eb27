import { generateKeyPairSync, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { ed25519Key } from '../domain/keys/key-object.ts';
import { ConfigError } from '../runtime/start-error.ts';
import { publicKeyOf, readAuthorityKeys } from '../service/authority/authority.ts';
import { readLog } from '../service/log-identity/log-record.ts';
import { SECRETS_KEY_BYTES } from '../service/records/secret-box.ts';
import { hasSecretsKey } from '../service/records/secrets-key-check.ts';
import type { RecordStore } from '../store/record-store.ts';
import type { Config } from './config.ts';

export interface NodeKeys {
  readonly authority: KeyObject;
  readonly secrets: Buffer;
  /** Signs checkpoints. */
  readonly log: KeyObject;
}

/** File names of the keys that a development node makes on first start. */
export const authorityKeyName = 'authority.pem';
export const secretsKeyName = 'secrets.key';
export const logKeyName = 'log.pem';

/** Whether a store depends on a key, so that no other will do. */
interface KeysInUse {
  readonly authority: boolean;
  readonly secrets: boolean;
  readonly log: boolean;
}

export async function keysInUse(records: RecordStore): Promise<KeysInUse> {
  return {
    authority: (await readAuthorityKeys(records)).length > 0,
    secrets: await hasSecretsKey(records),
    log: (await readLog(records)).log !== null,
  };
}

type KeyFiles = Pick<Config, 'authorityKeyFile' | 'secretsKeyFile' | 'logKeyFile' | 'dataDir'>;
const noneInUse: KeysInUse = { authority: false, secrets: false, log: false };

/**
 * Reads the keys that the configuration names, or those in the data directory. The latter are made if they are missing
 * and not in use. Throws ConfigError, and has made nothing then. A new file is complete or absent.
 */
export function readNodeKeys(config: KeyFiles, inUse: KeysInUse = noneInUse): NodeKeys {
  const authority = authorityKeyFile(config);
  const secrets = config.secretsKeyFile ?? join(config.dataDir, secretsKeyName);
  const log = config.logKeyFile ?? join(config.dataDir, logKeyName);
  if (inUse.authority && config.authorityKeyFile === null) refuseLost(authority, 'AUTHORITY_KEY_FILE', 'sealed');
  if (inUse.secrets && config.secretsKeyFile === null) refuseLost(secrets, 'SECRETS_KEY_FILE', 'encrypted');
  if (inUse.log && config.logKeyFile === null)
    refuseLost(log, 'LOG_KEY_FILE', 'signed', ', or enrol a new one with `ledger-trust log rotate FILE`');
  if (config.authorityKeyFile === null) makeOnce(authority, newSigningKey);
  if (config.secretsKeyFile === null) makeOnce(secrets, newSecretsKey);
  if (config.logKeyFile === null) makeOnce(log, newSigningKey);
  return withLogKey({ authority: authorityKey(authority), secrets: secretsKey(secrets) }, logKey(log));
}

/**
 * Reads the keys that all nodes of a cluster share. Without LOG_KEY_FILE, in development mode, all nodes derive the
 * same log key from the secrets key, which never changes. Throws ConfigError.
 */
export function readSharedNodeKeys(
  config: Pick<Config, 'logKeyFile'> & { readonly authorityKeyFile: string; readonly secretsKeyFile: string },
): NodeKeys {
  const secrets = secretsKey(config.secretsKeyFile);
  const log = config.logKeyFile === null ? derivedLogKey(secrets) : logKey(config.logKeyFile);
  return withLogKey({ authority: authorityKey(config.authorityKeyFile), secrets }, log);
}

/** A signature of a checkpoint must never be one of the authority, nor the other way round. */
function withLogKey(keys: Omit<NodeKeys, 'log'>, log: KeyObject): NodeKeys {
  if (publicKeyOf(log) !== publicKeyOf(keys.authority)) return { ...keys, log };
  throw new ConfigError(
    'Set LOG_KEY_FILE to another key than that of AUTHORITY_KEY_FILE: the key that seals events never signs checkpoints.',
  );
}

const SEED_BYTES = 32;

function derivedLogKey(secrets: Buffer): KeyObject {
  return ed25519Key(new Uint8Array(hkdfSync('sha256', secrets, '', 'svc-development-log-key-v1', SEED_BYTES)));
}

/** With a new key nothing in the store could be read, sealed or signed. */
function refuseLost(file: string, variable: string, verb: string, otherwise = ''): void {
  if (existsSync(file)) return;
  throw new ConfigError(
    `${file} is missing, the key that the data beside it was ${verb} with: restore it from the backup, or set ${variable} to a copy of it${otherwise}.`,
  );
}

export function authorityKeyFile({
  authorityKeyFile,
  dataDir,
}: Pick<KeyFiles, 'authorityKeyFile' | 'dataDir'>): string {
  return authorityKeyFile ?? join(dataDir, authorityKeyName);
}

export function authorityKey(file: string): KeyObject {
  return signingKey('AUTHORITY_KEY_FILE', file);
}

function logKey(file: string): KeyObject {
  return signingKey('LOG_KEY_FILE', file);
}

function signingKey(variable: string, file: string): KeyObject {
  try {
    return ed25519Key(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new ConfigError(
      `Set ${variable} to an Ed25519 private key in PKCS#8 PEM; ${file} is none (${reason(error)}).`,
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

function newSigningKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function newSecretsKey(): string {
  return `${randomBytes(SECRETS_KEY_BYTES).toString('base64')}\n`;
}

/** Replaces a key that the node has made for itself. The file holds the old key or the new one, and is durable then. */
export function replaceOwnKey(file: string, key: KeyObject): void {
  const draft = `${file}.next`;
  rmSync(draft, { force: true });
  const handle = openSync(draft, 'wx', 0o600);
  try {
    writeSync(handle, key.export({ type: 'pkcs8', format: 'pem' }).toString());
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(draft, file);
  syncDirectory(dirname(file));
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
