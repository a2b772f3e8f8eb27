import type { KeyObject } from 'node:crypto';
import { ed25519Key } from '../../client/signing/signing.ts';
import { inputError, readInput, type Terminal } from '../terminal/terminal.ts';

/**
 * Reads the Ed25519 private key in a PEM file (PKCS#8), or on stdin for `-`. Throws CliError (exit code 66) if there is
 * none.
 */
export async function readPrivateKey(terminal: Terminal, path: string): Promise<KeyObject> {
  const pem = await readInput(terminal, path);
  try {
    return ed25519Key(pem.toString('utf8'));
  } catch {
    throw inputError(`${path} holds no Ed25519 private key in PEM form (PKCS#8): make one with ledger-trust keygen.`);
  }
}
