import type { KeyObject } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { makeAuthority } from '../../src/cli/commands/authority.ts';
import { isoTime } from '../../src/domain/values/time.ts';
import { refuseOpenSecrets } from '../../src/node/config.ts';
import { authorityKey } from '../../src/node/node-keys.ts';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import type { Environment } from '../../src/runtime/config/setting.ts';
import { ConfigError } from '../../src/runtime/start-error.ts';
import { beginRotation, confirmAuthority, rotateAuthority } from '../../src/service/authority/authority.ts';
import { rotationLeadMs } from '../../src/service/authority/authority-watch.ts';
import type { AuthorityKeyRecord } from '../../src/service/authority/key-list.ts';
import { checkLog } from '../../src/service/log-identity/log-record.ts';
import { cassandraSettings } from '../../src/store/cassandra/session/settings.ts';
import type { RecordStore } from '../../src/store/record-store.ts';
import type { MemberBoard } from '../placement/members.ts';
import { openStores } from './log-commands.ts';
import { refuseRunningNodes } from './running-nodes.ts';

/**
 * `cluster rotate-authority FILE`: makes the key in FILE the authority of a cluster whose nodes are stopped. The key in
 * use (AUTHORITY_KEY_FILE) signs the start of the new key. After a crash the command can be run again.
 *
 * Redis may not know a node that still runs. Even then no event is sealed under a key that has ended: the end is dated
 * only once no node trusts the old key any more.
 *
 * Resolves with a sentence for the operator. Throws CliError or ConfigError if the rotation is not possible.
 */
export async function rotateClusterAuthority(env: Environment, file: string, board: MemberBoard): Promise<string> {
  const inUse = env.AUTHORITY_KEY_FILE?.trim() ?? '';
  if (inUse === '')
    throw new ConfigError('Set AUTHORITY_KEY_FILE to the key in use: it signs the start of the new one.');
  const [old, next] = [authorityKey(inUse), authorityKey(file)];
  refuseOpenSecrets(env, [['AUTHORITY_KEY_FILE', file]]);
  await refuseRunningNodes(board, 'with the old key they could seal nothing any more');
  await using stores = await openStores(env);
  const { keyspace } = cassandraSettings(env);
  const none = `Keyspace ${keyspace} has no authority yet: start its nodes with the new key.`;
  const done = await makeAuthority(stores.records, { key: next, file, none }, () => rotate(stores.records, old, next));
  return `${done} Start the nodes with AUTHORITY_KEY_FILE=${file}.`;
}

/**
 * Ends the old key `rotationLeadMs` after the begin of the rotation, when no node trusts an earlier look-up any more.
 */
async function rotate(records: RecordStore, old: KeyObject, next: KeyObject): Promise<AuthorityKeyRecord> {
  await checkLog(records, old);
  await beginRotation(records, old);
  await delay(rotationLeadMs);
  return rotateAuthority(records, old, next, isoTime(systemClock.now()));
}

/**
 * `cluster confirm-authority [DIGEST]`: shows or signs the list of the authority's keys, which a version before 0.2.0
 * wrote (confirmAuthority). Nodes of that version may run: they ignore the signature. Resolves and throws as
 * `rotateClusterAuthority`.
 */
export async function confirmClusterAuthority(env: Environment, digest: string | undefined): Promise<string> {
  const inUse = env.AUTHORITY_KEY_FILE?.trim() ?? '';
  if (inUse === '') throw new ConfigError('Set AUTHORITY_KEY_FILE to the key in use: it signs the list of all keys.');
  const newest = authorityKey(inUse);
  await using stores = await openStores(env);
  return await confirmAuthority(stores.records, newest, digest);
}
