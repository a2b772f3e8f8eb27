import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { isServiceName } from '../../domain/log/origin.ts';
import { isoTime } from '../../domain/values/time.ts';
import { type Config, readConfig } from '../../node/config.ts';
import { authorityKey, authorityKeyFile, logKeyName, replaceOwnKey } from '../../node/node-keys.ts';
import { systemClock } from '../../runtime/clock/system-clock.ts';
import type { Environment } from '../../runtime/config/setting.ts';
import { describeLog, keepLog, rotateLogKey, takeNewOrigin } from '../../service/log-identity/log-changes.ts';
import { checkHoldsData } from '../../store/lmdb/file/format.ts';
import { type LmdbStores, openLmdb } from '../../store/lmdb/open.ts';
import { usageError } from '../terminal/terminal.ts';
import { readNewKey } from './new-key.ts';

/**
 * `ledger-trust log rotate FILE`: makes the key in FILE sign the logs of a stopped node. Run again after a crash, it
 * completes the rotation. Like the other commands here, it returns a sentence for the user, and throws CliError,
 * ConfigError or StartError with a sentence that says what to correct.
 */
export async function rotateLog(env: Environment, file: string): Promise<string> {
  const config = readConfig(env);
  const next = readNewKey(file, 'LOG_KEY_FILE', env);
  await using stores = await openStopped(config);
  const log = await rotateLogKey({ ...stores, ...signedBy(config) }, next);
  return `${describeLog(log)} ${keepKey(config, next, file)}`;
}

/** `ledger-trust log keep`: a planned move. Nothing was signed since the copy was made. */
export async function keepRestoredLog(env: Environment): Promise<string> {
  const config = readConfig(env);
  await using stores = await openStopped(config);
  const { wasCopy } = await keepLog(stores);
  return wasCopy
    ? `${config.dataDir} counts as the original from now on: never start a node on the other one again.`
    : `${config.dataDir} is not marked as a copy: there is nothing to do.`;
}

/** `ledger-trust log new-origin NAME [--key FILE]` */
export async function moveLog(env: Environment, origin: string, file: string | undefined): Promise<string> {
  const config = readConfig(env);
  const next = file === undefined ? null : readNewKey(file, 'LOG_KEY_FILE', env);
  checkServiceName(origin);
  await using stores = await openStopped(config);
  // If this ends between the next two steps, the node asks for `log rotate FILE` at its start.
  const log = await takeNewOrigin({ ...stores, ...signedBy(config) }, origin, next);
  const named = config.logOrigin === null ? '' : ` Start the node with LOG_ORIGIN=${origin}.`;
  return `${describeLog(log)}${named}${next === null || file === undefined ? '' : ` ${keepKey(config, next, file)}`}`;
}

/** Throws CliError unless the argument may be the name of a service. */
export function checkServiceName(name: string): void {
  if (isServiceName(name)) return;
  throw usageError(
    `${JSON.stringify(name)} is no name of a service: give the base URL of the API without its scheme, in lower case, such as ledger.example/v1-2026-11-26.`,
  );
}

/** Opens the store of a stopped node. Throws StartError if there is none, or a node uses it. */
export function openStopped({ dataDir }: Config): Promise<LmdbStores> {
  checkHoldsData(dataDir);
  return openLmdb({ dataDir, now: () => systemClock.now(), onFatal: () => {} });
}

function signedBy(config: Config): { readonly authorityKey: KeyObject; readonly nowIso: string } {
  return { authorityKey: authorityKey(authorityKeyFile(config)), nowIso: isoTime(systemClock.now()) };
}

/** Keeps the new key where the node reads it, if that is its own file. Says what to do next. */
function keepKey({ logKeyFile, dataDir }: Config, key: KeyObject, file: string): string {
  if (logKeyFile !== null) return `Start the node with LOG_KEY_FILE=${file}.`;
  const own = join(dataDir, logKeyName);
  replaceOwnKey(own, key);
  return `The key is kept in ${own}.`;
}
