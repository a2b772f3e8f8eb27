import { type KeyObject, randomBytes } from 'node:crypto';
import { checkServiceName } from '../../src/cli/commands/log.ts';
import { readNewKey } from '../../src/cli/commands/new-key.ts';
import { isoTime } from '../../src/domain/values/time.ts';
import { authorityKey } from '../../src/node/node-keys.ts';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import type { Environment } from '../../src/runtime/config/setting.ts';
import { ConfigError } from '../../src/runtime/start-error.ts';
import { describeLog, keepLog, rotateLogKey, takeNewOrigin } from '../../src/service/log-identity/log-changes.ts';
import { signsOnForS } from '../../src/service/log-identity/log-watch.ts';
import { type CassandraStores, openCassandra } from '../../src/store/cassandra/open.ts';
import { cassandraSettings } from '../../src/store/cassandra/session/settings.ts';
import type { MemberBoard } from '../placement/members.ts';
import { refuseRunningNodes } from './running-nodes.ts';

/**
 * `cluster log rotate FILE`: makes the key in FILE sign the logs of a cluster whose nodes are stopped. Run again after
 * a crash, it completes the rotation. Like the other commands here, it needs the variables of a node, returns a
 * sentence for the operator, and throws CliError, ConfigError or StartError with a sentence that says what to correct.
 */
export async function rotateClusterLog(env: Environment, file: string, board: MemberBoard): Promise<string> {
  const next = readNewKey(file, 'LOG_KEY_FILE', env);
  const signed = signedBy(env);
  await refuseRunningNodes(board, otherNodes);
  await using stores = await openStores(env);
  const log = await rotateLogKey({ ...stores, ...signed }, next);
  return `${describeLog(log)} Start the nodes with LOG_KEY_FILE=${file}. ${forgottenNodes}`;
}

/** `cluster log keep`: a planned move. Nothing was signed since the copy was made. */
export async function keepClusterLog(env: Environment, board: MemberBoard): Promise<string> {
  await refuseRunningNodes(board, otherNodes);
  await using stores = await openStores(env);
  const { wasCopy } = await keepLog(stores);
  return wasCopy
    ? 'This keyspace counts as the original from now on: never start a node on the other one again.'
    : 'This keyspace is not marked as a copy: there is nothing to do.';
}

/** `cluster log new-origin NAME [--key FILE]` */
export async function moveClusterLog(
  env: Environment,
  origin: string,
  file: string | undefined,
  board: MemberBoard,
): Promise<string> {
  const next = file === undefined ? null : readNewKey(file, 'LOG_KEY_FILE', env);
  const signed = signedBy(env);
  checkServiceName(origin);
  await refuseRunningNodes(board, otherNodes);
  await using stores = await openStores(env);
  const log = await takeNewOrigin({ ...stores, ...signed }, origin, next);
  const key = file === undefined ? '' : ` and LOG_KEY_FILE=${file}`;
  return `${describeLog(log)} Start the nodes with LOG_ORIGIN=${origin}${key}. ${forgottenNodes}`;
}

const otherNodes = 'they have the settings of before, and could sign nothing any more';
/** Of another CLUSTER_NAME, for example. */
const forgottenNodes = `A node that runs and was not seen signs nothing any more, from ${signsOnForS} s after now on.`;

export function openStores(env: Environment): Promise<CassandraStores> {
  const settings = cassandraSettings(env);
  return openCassandra({ settings, now: () => systemClock.now(), random: (bytes) => randomBytes(bytes) });
}

function signedBy(env: Environment): { readonly authorityKey: KeyObject; readonly nowIso: string } {
  const file = env.AUTHORITY_KEY_FILE?.trim() ?? '';
  if (file === '') throw new ConfigError('Set AUTHORITY_KEY_FILE: the authority endorses the key that signs the logs.');
  return { authorityKey: authorityKey(file), nowIso: isoTime(systemClock.now()) };
}
