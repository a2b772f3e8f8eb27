import { join } from 'node:path';
import { isoTime } from '../../domain/values/time.ts';
import { readConfig } from '../../node/config.ts';
import { authorityKey, authorityKeyFile, authorityKeyName, replaceOwnKey } from '../../node/node-keys.ts';
import { systemClock } from '../../runtime/clock/system-clock.ts';
import type { Environment } from '../../runtime/config/setting.ts';
import {
  believedAuthority,
  confirmAuthority,
  publicKeyOf,
  readAuthorityKeys,
  rotateAuthority,
} from '../../service/authority/authority.ts';
import { authorityFingerprint } from '../../service/authority/key-list.ts';
import { checkLog, isLogKey } from '../../service/log-identity/log-record.ts';
import { CliError } from '../terminal/terminal.ts';
import { openStopped } from './log.ts';
import { readNewKey } from './new-key.ts';

/**
 * `ledger-trust authority rotate FILE`: makes the key in FILE the authority of the store of a stopped node. Run again
 * after a crash, it completes the rotation. Returns a sentence for the user. Throws CliError, ConfigError or StartError
 * with a sentence that says what to correct.
 */
export async function rotate(env: Environment, file: string): Promise<string> {
  const config = readConfig(env);
  const next = readNewKey(file, 'AUTHORITY_KEY_FILE', env);
  await using stores = await openStopped(config);
  const known = (await readAuthorityKeys(stores.records)).at(-1);
  if (known === undefined)
    throw new CliError(
      `${config.dataDir} has no authority yet: start a node on it once, which enrols the key that it has as the first.`,
    );
  let record = known;
  if (known.publicKey === publicKeyOf(next)) await believedAuthority(stores.records, next);
  else {
    if (await isLogKey(stores.records, publicKeyOf(next)))
      throw new CliError(`${file} signs checkpoints: the authority needs a key of its own, so make another one.`);
    const inUse = authorityKey(authorityKeyFile(config));
    await checkLog(stores.records, inUse);
    record = await rotateAuthority(stores.records, inUse, next, isoTime(systemClock.now()));
  }
  const done = `${record.kid} (fingerprint ${authorityFingerprint(record)}) is the authority from ${record.validFrom} on.`;
  if (config.authorityKeyFile !== null) return `${done} Start the nodes with AUTHORITY_KEY_FILE=${file}.`;
  const own = join(config.dataDir, authorityKeyName);
  replaceOwnKey(own, next);
  return `${done} The key is kept in ${own}.`;
}

/**
 * `ledger-trust authority confirm [DIGEST]`: shows or signs the list of the authority's keys of a stopped node, which a
 * version before 0.2.0 wrote (confirmAuthority). Returns and throws as `rotate` does.
 */
export async function confirm(env: Environment, digest: string | undefined): Promise<string> {
  const config = readConfig(env);
  await using stores = await openStopped(config);
  return await confirmAuthority(stores.records, authorityKey(authorityKeyFile(config)), digest);
}
