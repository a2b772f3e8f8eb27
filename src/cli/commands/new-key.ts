import type { KeyObject } from 'node:crypto';
import { refuseOpenSecrets } from '../../node/config.ts';
import { authorityKey } from '../../node/node-keys.ts';
import type { Environment } from '../../runtime/config/setting.ts';
import { ConfigError } from '../../runtime/start-error.ts';
import { inputError } from '../terminal/terminal.ts';

type KeyVariable = 'AUTHORITY_KEY_FILE' | 'LOG_KEY_FILE';

/**
 * Reads the new key of a rotation. Throws CliError (exit code 66), and ConfigError for a file that the next start would
 * refuse.
 */
export function readNewKey(file: string, variable: KeyVariable, env: Environment): KeyObject {
  const key = keyIn(file);
  refuseOpenSecrets(env, [[variable, file]]);
  return key;
}

function keyIn(file: string): KeyObject {
  try {
    return authorityKey(file);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // It names a variable, but the file is an argument.
    throw inputError(
      `${file} must be an Ed25519 private key in PKCS#8 PEM that you may read: \`ledger-trust keygen --out NEW.pem\` makes one.`,
    );
  }
}
