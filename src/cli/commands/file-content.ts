import type { KeyObject } from 'node:crypto';
import { fstatSync, type Stats } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import { LedgerTrustError } from '../../client/error.ts';
import { LedgerError } from '../../domain/errors.ts';
import { type JsonNode, parseJsonBytes } from '../../domain/json/json.ts';
import { ed25519Key } from '../../domain/keys/key-object.ts';
import { neededApiKey, type Settings } from '../service/settings.ts';
import { inputError, nameOf, outputError, readInput, type Terminal } from '../terminal/terminal.ts';

const STDIN = 0;

/** Whether two paths name the same file, also through links. `-` is stdin, which may be a file that has a path too. */
export async function isSameFile(one: string, other: string): Promise<boolean> {
  if (one === other) return true;
  const [a, b] = await Promise.all([one, other].map((path) => statOf(path).catch(() => null)));
  return a != null && b != null && a.dev === b.dev && a.ino === b.ino;
}

async function statOf(path: string): Promise<Stats> {
  return path === '-' ? fstatSync(STDIN) : await stat(path);
}

/** A LedgerError or LedgerTrustError of `read` becomes a CliError that names the file and `what` it should hold. */
export function contentOf<T>(path: string, what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof LedgerError || error instanceof LedgerTrustError)) throw error;
    throw inputError(`${nameOf(path)} holds no ${what}: ${error.message}`);
  }
}

/** Parses a file, or stdin for `-`, strictly (RFC 7493). Throws CliError (exit code 66). */
export async function readJson(terminal: Terminal, path: string, what: string, maxDepth?: number): Promise<JsonNode> {
  const bytes = await readInput(terminal, path);
  return contentOf(path, what, () => parseJsonBytes(bytes, maxDepth));
}

/** The text of a file that holds a note or a proof. Throws CliError (exit code 66). */
export async function readText(terminal: Terminal, path: string): Promise<string> {
  const bytes = await readInput(terminal, path);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw inputError(`${nameOf(path)} is no UTF-8.`);
  }
}

/** The API key in a file, or in stdin for `-`. Without a file, that of `settings`. Throws CliError. */
export async function readApiKey(
  terminal: Terminal,
  file: string | undefined,
  settings: Pick<Settings, 'apiKey'>,
): Promise<string> {
  if (file === undefined) return neededApiKey(settings);
  const key = (await readInput(terminal, file)).toString('utf8').trim();
  if (key === '') throw inputError(`${nameOf(file)} holds no API key.`);
  return key;
}

/** Reads PEM (PKCS#8) from a file, or from stdin for `-`. Throws CliError (exit code 66). */
export async function readPrivateKey(terminal: Terminal, path: string): Promise<KeyObject> {
  const pem = await readInput(terminal, path);
  try {
    return ed25519Key(pem.toString('utf8'));
  } catch {
    throw inputError(`${path} holds no Ed25519 private key in PEM form (PKCS#8): make one with ledger-trust keygen.`);
  }
}

export function privateKeyPem(privateKey: KeyObject): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Writes PEM (PKCS#8), readable by its owner alone. Throws CliError (exit code 74). */
export async function writePrivateKey(path: string, privateKey: KeyObject): Promise<void> {
  try {
    // An existing file is never replaced: it may be the only copy of a key.
    await writeFile(path, privateKeyPem(privateKey), { mode: 0o600, flag: 'wx', flush: true });
  } catch (error) {
    throw outputError(path, error);
  }
}
