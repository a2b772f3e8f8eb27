import { readFileSync } from 'node:fs';
import { StartError } from '../../../runtime/start-error.ts';
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

/** Reads the settings from the variables CASSANDRA_* of an environment. Throws StartError if a value is invalid. */
export function cassandraSettings(env: { readonly [name: string]: string | undefined }): CassandraSettings {
  const contactPoints = list(env.CASSANDRA_CONTACT_POINTS);
  if (contactPoints.length === 0)
    throw new StartError('Set CASSANDRA_CONTACT_POINTS to the addresses of Cassandra, as host:port,host:port.');
  if (new Set(contactPoints.map(portOf)).size > 1)
    throw new StartError(
      'Name all of CASSANDRA_CONTACT_POINTS with the same port: nodes tell of each other without one.',
    );
  const reach = env.CASSANDRA_CONSISTENCY?.trim() || 'local';
  if (reach !== 'local' && reach !== 'global')
    throw new StartError('Set CASSANDRA_CONSISTENCY to local (LOCAL_QUORUM, LOCAL_SERIAL) or global (QUORUM, SERIAL).');
  return {
    contactPoints,
    localDataCenter: checked(
      env.CASSANDRA_DATA_CENTER?.trim() || 'datacenter1',
      /^[\w.-]{1,128}$/,
      'Set CASSANDRA_DATA_CENTER to the name of a data centre: at most 128 letters, digits, dots, hyphens and underscores.',
    ),
    // Plain, because it becomes part of statements.
    keyspace: checked(
      env.CASSANDRA_KEYSPACE?.trim() || 'ledger_trust',
      /^[a-z][a-z0-9_]{0,47}$/,
      'Set CASSANDRA_KEYSPACE to 1 to 48 lower-case letters, digits and underscores.',
    ),
    reach,
    login: login(env.CASSANDRA_USERNAME?.trim() || null, env.CASSANDRA_PASSWORD_FILE?.trim() || null),
    tlsCa: env.CASSANDRA_TLS_CA_FILE ? fileText('CASSANDRA_TLS_CA_FILE', env.CASSANDRA_TLS_CA_FILE.trim()) : null,
    allow: new Set(list(env.CASSANDRA_ALLOW).map(checkedOverride)),
    requestsMax: count('CASSANDRA_REQUESTS_MAX', env.CASSANDRA_REQUESTS_MAX, defaultInFlightMax),
    writesMax: count('CASSANDRA_WRITES_MAX', env.CASSANDRA_WRITES_MAX, writesMaxByDefault),
  };
}

function login(username: string | null, passwordFile: string | null): CassandraSettings['login'] {
  if (username === null && passwordFile === null) return null;
  if (username === null) throw new StartError('Set CASSANDRA_USERNAME too: CASSANDRA_PASSWORD_FILE is its password.');
  if (passwordFile === null)
    throw new StartError('Set CASSANDRA_PASSWORD_FILE too: CASSANDRA_USERNAME is nothing without its password.');
  const password = fileText('CASSANDRA_PASSWORD_FILE', passwordFile).trim();
  if (password === '')
    throw new StartError(`Set CASSANDRA_PASSWORD_FILE to a file that holds the password; ${passwordFile} is empty.`);
  return { username, password };
}

function count(variable: string, text: string | undefined, otherwise: number): number {
  const value = text?.trim() ?? '';
  if (value === '') return otherwise;
  if (/^\d{1,7}$/.test(value) && Number(value) >= 1 && Number(value) <= countMax) return Number(value);
  throw new StartError(`Set ${variable} to a whole number from 1 to ${countMax}; it is ${JSON.stringify(value)}.`);
}

/** The port of `host:port` or `[address]:port`, or the default port for a host alone. */
export function portOf(contactPoint: string): number {
  const port = /^(?:\[[^\]]*\]|[^:]*):(\d+)$/.exec(contactPoint)?.[1];
  return port === undefined ? defaultPort : Number(port);
}

function checked(value: string, form: RegExp, advice: string): string {
  if (form.test(value)) return value;
  throw new StartError(advice);
}

function checkedOverride(name: string): Override {
  const known = overrides.find((override) => override === name);
  if (known === undefined) throw new StartError(`Set CASSANDRA_ALLOW to some of: ${overrides.join(', ')}.`);
  return known;
}

function list(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function fileText(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartError(`Set ${variable} to a file that this user may read.`, error);
  }
}
