import type { KeyObject } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isoTime } from '../../domain/values/time.ts';
import { ConfigError, type Environment, readConfig } from '../../node/config.ts';
import { authorityKey, authorityKeyName, keysInUse, readNodeKeys } from '../../node/node-keys.ts';
import { systemClock } from '../../runtime/clock/system-clock.ts';
import {
  authorityFingerprint,
  publicKeyOf,
  readAuthorityKeys,
  rotateAuthority,
} from '../../service/authority/authority.ts';
import { checkHoldsData } from '../../store/lmdb/file/format.ts';
import { openLmdb } from '../../store/lmdb/open.ts';
import { CliError } from '../terminal/terminal.ts';

/**
 * `ledger-trust authority rotate FILE`: makes the key in FILE the authority of the store of a stopped node. Run again
 * after a crash, it completes the rotation. Returns a sentence for the user. Throws CliError, ConfigError or StartError
 * with a sentence that says what to correct.
 */
export async function rotate(env: Environment, file: string): Promise<string> {
  const config = readConfig(env);
  const next = nextKey(file);
  checkHoldsData(config.dataDir);
  await using stores = await openLmdb({ dataDir: config.dataDir, now: () => systemClock.now(), onFatal: () => {} });
  const known = (await readAuthorityKeys(stores.records)).at(-1);
  if (known === undefined)
    throw new CliError(
      `${config.dataDir} has no authority yet: start a node on it once, which enrols the key that it has as the first.`,
    );
  let record = known;
  if (known.publicKey !== publicKeyOf(next)) {
    const { authority } = readNodeKeys(config, await keysInUse(stores.records));
    record = await rotateAuthority(stores.records, authority, next, isoTime(systemClock.now()));
  }
  const done = `${record.kid} (fingerprint ${authorityFingerprint(record)}) is the authority from ${record.validFrom} on.`;
  if (config.authorityKeyFile !== null) return `${done} Start the nodes with AUTHORITY_KEY_FILE=${file}.`;
  const own = join(config.dataDir, authorityKeyName);
  writeFileSync(`${own}.next`, next.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flush: true });
  renameSync(`${own}.next`, own);
  return `${done} The key is kept in ${own}.`;
}

/** Reads the new key. A ConfigError would name a variable, but the file is an argument. */
function nextKey(file: string): KeyObject {
  try {
    return authorityKey(file);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError(
      `${file} must be an Ed25519 private key in PKCS#8 PEM that you may read: \`ledger-trust keygen --out NEW.pem\` makes one.`,
    );
  }
}
