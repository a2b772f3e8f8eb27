import type { KeyObject } from 'node:crypto';
import { ConfigError } from '../../node/config.ts';
import { authorityKey } from '../../node/node-keys.ts';
import { CliError } from '../terminal/terminal.ts';

/** Reads the new key of a rotation. A ConfigError would name a variable, but the file is an argument. */
export function readNewKey(file: string): KeyObject {
  try {
    return authorityKey(file);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError(
      `${file} must be an Ed25519 private key in PKCS#8 PEM that you may read: \`ledger-trust keygen --out NEW.pem\` makes one.`,
    );
  }
}
