import { randomBytes } from 'node:crypto';
import { ConfigError, type Environment } from '../../src/config.ts';
import { isoTime } from '../../src/domain/time.ts';
import { authorityKey } from '../../src/node-keys.ts';
import {
  authorityFingerprint,
  publicKeyOf,
  readAuthorityKeys,
  rotateAuthority,
} from '../../src/service/signatures/authority.ts';
import { openCassandra } from '../../src/store/cassandra/open.ts';
import { cassandraSettings } from '../../src/store/cassandra/settings.ts';
import { systemClock } from '../../src/system.ts';
import type { MemberBoard } from '../placement/members.ts';

/**
 * `cluster rotate-authority FILE`: makes the key in FILE the authority of a cluster whose nodes are stopped; its start is signed by the
 * key in use (AUTHORITY_KEY_FILE). Run again after a crash it finishes what it began. Answers a sentence; ConfigError with one that says
 * what to do where it cannot be done.
 */
export async function rotateClusterAuthority(env: Environment, file: string, board: MemberBoard): Promise<string> {
  const inUse = env.AUTHORITY_KEY_FILE?.trim() ?? '';
  if (inUse === '')
    throw new ConfigError('Set AUTHORITY_KEY_FILE to the key in use: it signs the start of the new one.');
  const [old, next] = [authorityKey(inUse), authorityKey(file)];
  const members = await board.list();
  if (members.length > 0)
    throw new ConfigError(
      `Stop all nodes first (${members.map(({ id }) => id).join(', ')}): what they would seal under the old key counted no more.`,
    );
  const settings = cassandraSettings(env);
  const now = () => systemClock.now();
  await using stores = await openCassandra({ settings, now, random: (bytes) => randomBytes(bytes) });
  const known = (await readAuthorityKeys(stores.records)).at(-1);
  if (known === undefined)
    throw new ConfigError(`Keyspace ${settings.keyspace} has no authority yet: start its nodes with the new key.`);
  const record =
    known.publicKey === publicKeyOf(next) ? known : await rotateAuthority(stores.records, old, next, isoTime(now()));
  return `${record.kid} (fingerprint ${authorityFingerprint(record)}) is the authority from ${record.validFrom} on. Start the nodes with AUTHORITY_KEY_FILE=${file}.`;
}
