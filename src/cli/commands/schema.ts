import { randomBytes } from 'node:crypto';
import { defaultShardCount } from '../../actors/bounds.ts';
import type { Environment } from '../../runtime/config/setting.ts';
import { StartError } from '../../runtime/start-error.ts';
import { applySchema as applyCassandraSchema } from '../../store/cassandra/schema/apply-schema.ts';
import { shardsMax } from '../../store/cassandra/schema/fact-values.ts';
import { cassandraSettings } from '../../store/cassandra/session/settings.ts';

interface SchemaCommandOptions {
  /** `dc:replicas`, separated by commas. Default: three replicas in CASSANDRA_DATA_CENTER. */
  readonly replication?: string;
  /** Default: 256. Cannot be changed once the schema is applied. */
  readonly shards?: string;
}

const defaultReplicas = 3;

/**
 * `ledger-trust schema apply`: creates what is missing of the keyspace and its tables. Returns a sentence that says
 * what is there now. Throws ConfigError or StartError with a sentence that says what to correct.
 */
export async function applySchema(env: Environment, options: SchemaCommandOptions): Promise<string> {
  const settings = cassandraSettings(env);
  const replication =
    options.replication === undefined
      ? new Map([[settings.localDataCenter, defaultReplicas]])
      : replicationOf(options.replication);
  const shardCount = options.shards === undefined ? defaultShardCount : shardsOf(options.shards);
  return applyCassandraSchema(settings, { replication, shardCount, random: (bytes) => randomBytes(bytes) });
}

/** Parses `dc1:3,dc2:3` into replicas by data centre. Throws StartError for any other text. */
function replicationOf(text: string): Map<string, number> {
  const parts = text.split(',').map((part) => /^([A-Za-z0-9_.-]+):([1-9][0-9]?)$/.exec(part.trim()));
  const replication = new Map<string, number>();
  for (const part of parts) {
    const [, name = '', count = ''] = part ?? [];
    if (name === '') throw new StartError('--replication is written as datacenter:replicas, such as datacenter1:3.');
    replication.set(name, Number(count));
  }
  return replication;
}

function shardsOf(text: string): number {
  const count = /^[1-9][0-9]{0,4}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > shardsMax) throw new StartError(`--shards is a number from 1 to ${shardsMax}.`);
  return count;
}
