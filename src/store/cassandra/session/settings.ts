import { readFileSync } from 'node:fs';
import {
  type Environment,
  listOf,
  matching,
  plain,
  readSetting,
  type Settings,
  wholeNumber,
} from '../../../runtime/config/setting.ts';
import { ConfigError } from '../../../runtime/start-error.ts';
import { defaultInFlightMax } from './circuit.ts';

/** Unsafe settings of Cassandra. A node and `schema apply` refuse them unless CASSANDRA_ALLOW names them. */
export type Override = 'paxos-v1' | 'periodic-commit-log';
const overrides: readonly Override[] = ['paxos-v1', 'periodic-commit-log'];

const defaultPort = 9_042;
const countMax = 1_000_000;
/** Default of CASSANDRA_WRITES_MAX. Callers stay far below. */
export const writesMaxByDefault = 4_096;

export interface CassandraSettings {
  /** `host` or `host:port`. At least one, all with the same port. */
  readonly contactPoints: readonly string[];
  readonly localDataCenter: string;
  readonly keyspace: string;
  /** `local`: LOCAL_QUORUM and LOCAL_SERIAL. `global`: QUORUM and SERIAL, needed with several data centres. */
  readonly reach: 'local' | 'global';
  readonly login: { readonly username: string; readonly password: string } | null;
  /** PEM of the certificate authority of the servers' certificates. null for no TLS. */
  readonly tlsCa: string | null;
  readonly allow: ReadonlySet<Override>;
  /** Most requests to Cassandra in flight. */
  readonly requestsMax: number;
  /** Most writes that may wait for one ledger or record. */
  readonly writesMax: number;
}

/**
 * The table in docs/operations.md is made from them. The names begin with that of the store: they stand in one object
 * with the other variables of a clustered node.
 */
export const cassandraVariables = {
  cassandraContactPoints: {
    name: 'CASSANDRA_CONTACT_POINTS',
    read: contactPoints,
    whenUnset: 'none; required',
    meaning: 'Addresses of Cassandra, `host:port`, separated by commas.',
  },
  cassandraDataCenter: {
    name: 'CASSANDRA_DATA_CENTER',
    read: matching(
      /^[\w.-]{1,128}$/,
      'the name of a data centre: at most 128 letters, digits, dots, hyphens and underscores',
    ),
    default: 'datacenter1',
    meaning: 'The data centre that this node works with.',
  },
  // Plain, because it becomes part of statements.
  cassandraKeyspace: {
    name: 'CASSANDRA_KEYSPACE',
    read: matching(/^[a-z][a-z0-9_]{0,47}$/, '1 to 48 lower-case letters, digits and underscores'),
    default: 'ledger_trust',
    meaning: 'The keyspace that `schema apply` has made.',
  },
  cassandraReach: {
    name: 'CASSANDRA_CONSISTENCY',
    read: reach,
    default: 'local',
    meaning: '`local` in one data centre, `global` over several.',
  },
  cassandraUsername: {
    name: 'CASSANDRA_USERNAME',
    read: plain,
    whenUnset: 'none',
    meaning: 'Login, with CASSANDRA_PASSWORD_FILE.',
  },
  cassandraPasswordFile: {
    name: 'CASSANDRA_PASSWORD_FILE',
    read: plain,
    whenUnset: 'none',
    meaning: 'File that holds the password.',
  },
  cassandraTlsCaFile: {
    name: 'CASSANDRA_TLS_CA_FILE',
    read: plain,
    whenUnset: 'none',
    meaning: 'PEM of the CA that signed Cassandra’s certificates.',
  },
  cassandraAllow: {
    name: 'CASSANDRA_ALLOW',
    read: overridesIn,
    whenUnset: 'none',
    meaning: '`paxos-v1`, `periodic-commit-log`: unsafe settings of Cassandra that are allowed by name.',
  },
  cassandraRequestsMax: {
    name: 'CASSANDRA_REQUESTS_MAX',
    read: wholeNumber(1, countMax),
    default: String(defaultInFlightMax),
    meaning: 'Requests to Cassandra that may be under way at once. Beyond it calls are `overloaded`.',
  },
  cassandraWritesMax: {
    name: 'CASSANDRA_WRITES_MAX',
    read: wholeNumber(1, countMax),
    default: String(writesMaxByDefault),
    meaning: 'Writes that may wait for one ledger or record. Beyond it calls are `overloaded`.',
  },
} satisfies Settings;

/** Reads the variables CASSANDRA_* of an environment. Throws ConfigError if a value is invalid. */
export function cassandraSettings(env: Environment): CassandraSettings {
  const variables = cassandraVariables;
  const caFile = readSetting(env, variables.cassandraTlsCaFile);
  return {
    contactPoints: readSetting(env, variables.cassandraContactPoints) ?? contactPoints(''),
    reach: readSetting(env, variables.cassandraReach),
    localDataCenter: readSetting(env, variables.cassandraDataCenter),
    keyspace: readSetting(env, variables.cassandraKeyspace),
    login: login(readSetting(env, variables.cassandraUsername), readSetting(env, variables.cassandraPasswordFile)),
    tlsCa: caFile === null ? null : fileText(variables.cassandraTlsCaFile.name, caFile),
    allow: new Set(readSetting(env, variables.cassandraAllow)),
    requestsMax: readSetting(env, variables.cassandraRequestsMax),
    writesMax: readSetting(env, variables.cassandraWritesMax),
  };
}

function contactPoints(text: string): readonly string[] {
  const points = listOf(text);
  if (points.length === 0)
    throw new ConfigError('Set CASSANDRA_CONTACT_POINTS to the addresses of Cassandra, as host:port,host:port.');
  if (new Set(points.map(portOf)).size > 1)
    throw new ConfigError(
      'Name all of CASSANDRA_CONTACT_POINTS with the same port: nodes tell of each other without one.',
    );
  return points;
}

function reach(text: string): 'local' | 'global' {
  if (text === 'local' || text === 'global') return text;
  throw new ConfigError('Set CASSANDRA_CONSISTENCY to local (LOCAL_QUORUM, LOCAL_SERIAL) or global (QUORUM, SERIAL).');
}

function overridesIn(text: string): readonly Override[] {
  return listOf(text).map((name) => {
    const known = overrides.find((override) => override === name);
    if (known === undefined) throw new ConfigError(`Set CASSANDRA_ALLOW to some of: ${overrides.join(', ')}.`);
    return known;
  });
}

function login(username: string | null, passwordFile: string | null): CassandraSettings['login'] {
  if (username === null && passwordFile === null) return null;
  if (username === null) throw new ConfigError('Set CASSANDRA_USERNAME too: CASSANDRA_PASSWORD_FILE is its password.');
  if (passwordFile === null)
    throw new ConfigError('Set CASSANDRA_PASSWORD_FILE too: CASSANDRA_USERNAME is nothing without its password.');
  const password = fileText('CASSANDRA_PASSWORD_FILE', passwordFile).trim();
  if (password === '')
    throw new ConfigError(`Set CASSANDRA_PASSWORD_FILE to a file that holds the password; ${passwordFile} is empty.`);
  return { username, password };
}

/** The port of `host:port` or `[address]:port`, or the default port for a host alone. */
export function portOf(contactPoint: string): number {
  const port = /^(?:\[[^\]]*\]|[^:]*):(\d+)$/.exec(contactPoint)?.[1];
  return port === undefined ? defaultPort : Number(port);
}

function fileText(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new ConfigError(`Set ${variable} to a file that this user may read.`);
  }
}
