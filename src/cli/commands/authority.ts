import type { KeyObject } from 'node:crypto';
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
import { type AuthorityKeyRecord, authorityFingerprint } from '../../service/authority/key-list.ts';
import { checkLog, isLogKey } from '../../service/log-identity/log-record.ts';
import type { RecordStore } from '../../store/record-store.ts';
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
  const none = `${config.dataDir} has no authority yet: start a node on it once, which enrols the key that it has as the first.`;
  const done = await makeAuthority(stores.records, { key: next, file, none }, async () => {
    const inUse = authorityKey(authorityKeyFile(config));
    await checkLog(stores.records, inUse);
    return rotateAuthority(stores.records, inUse, next, isoTime(systemClock.now()));
  });
  if (config.authorityKeyFile !== null) return `${done} Start the nodes with AUTHORITY_KEY_FILE=${file}.`;
  const own = join(config.dataDir, authorityKeyName);
  replaceOwnKey(own, next);
  return `${done} The key is kept in ${own}.`;
}

/**
 * Has `rotate` make the key the authority, unless it is that already. Returns a sentence that says so. Throws CliError
 * if the key signs checkpoints, or, with the sentence `none`, if the store has no authority.
 */
export async function makeAuthority(
  records: RecordStore,
  { key, file, none }: { readonly key: KeyObject; readonly file: string; readonly none: string },
  rotate: () => Promise<AuthorityKeyRecord>,
): Promise<string> {
  const known = (await readAuthorityKeys(records)).at(-1);
  if (known === undefined) throw new CliError(none);
  if (await isLogKey(records, publicKeyOf(key)))
    throw new CliError(`${file} signs checkpoints: the authority needs a key of its own, so make another one.`);
  const isDone = known.publicKey === publicKeyOf(key);
  if (isDone) await believedAuthority(records, key);
  const record = isDone ? known : await rotate();
  return `${record.kid} (fingerprint ${authorityFingerprint(record)}) is the authority from ${record.validFrom} on.`;
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
