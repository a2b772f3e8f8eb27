import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { type Config, ConfigError, type ConfigVariable, type Environment, readConfig } from '../src/config.ts';
import { type CassandraSettings, cassandraSettings } from '../src/store/cassandra/settings.ts';
import type { PeerSecurity, PeerTls } from './peers/security.ts';
import { defaultTimings, type PlacementTimings } from './placement/timings.ts';

/** What a node of a cluster is told beside what every node is. */
export interface ClusterConfig {
  readonly node: Config;
  readonly nodeId: string;
  readonly redisUrl: string;
  /** Names the cluster in Redis. */
  readonly placement: string;
  readonly cassandra: CassandraSettings;
  /** Where other nodes reach this one: host, or host:port. Without a port, the one of the internal port. */
  readonly advertise: string;
  readonly peers: PeerSecurity;
  readonly timings: PlacementTimings;
}

const defaultPlacement = 'placement';
const secretCharactersMin = 16;

/** The variables of a clustered node, beside those of every node; the table in the documentation is made from this one. */
export const clusterConfigTable: readonly ConfigVariable[] = Object.freeze([
  { name: 'REDIS_URL', default: 'none; required', meaning: 'Redis for leases and members, `redis://` or `rediss://`.' },
  { name: 'CLUSTER_NAME', default: defaultPlacement, meaning: 'Tells clusters apart that share one Redis.' },
  {
    name: 'CASSANDRA_CONTACT_POINTS',
    default: 'none; required',
    meaning: 'Addresses of Cassandra, `host:port`, separated by commas.',
  },
  { name: 'CASSANDRA_DATA_CENTER', default: 'datacenter1', meaning: 'The data centre that this node works with.' },
  { name: 'CASSANDRA_KEYSPACE', default: 'ledger_trust', meaning: 'The keyspace that `schema apply` has made.' },
  {
    name: 'CASSANDRA_CONSISTENCY',
    default: 'local',
    meaning: '`local` in one data centre, `global` over several.',
  },
  { name: 'CASSANDRA_USERNAME', default: 'none', meaning: 'Login, with CASSANDRA_PASSWORD_FILE.' },
  { name: 'CASSANDRA_PASSWORD_FILE', default: 'none', meaning: 'File that holds the password.' },
  {
    name: 'CASSANDRA_TLS_CA_FILE',
    default: 'none',
    meaning: 'PEM of the authority that signed Cassandra’s certificates.',
  },
  {
    name: 'CASSANDRA_ALLOW',
    default: 'none',
    meaning: '`paxos-v1`, `periodic-commit-log`: unsafe settings of Cassandra that are allowed by name.',
  },
  { name: 'NODE_ID', default: 'host name and a random part', meaning: 'Name of this node, unique while it lives.' },
  {
    name: 'INTERNAL_HOST',
    default: '0.0.0.0',
    meaning: 'Address that the internal port listens on. Never a public one.',
  },
  { name: 'INTERNAL_PORT', default: '9100', meaning: 'Internal port: other nodes, metrics, readiness.' },
  {
    name: 'ADVERTISE_ADDRESS',
    default: 'INTERNAL_HOST, or the host name where that is every address',
    meaning: 'Where other nodes reach the internal port: `host` or `host:port`.',
  },
  {
    name: 'CLUSTER_TLS_CA_FILE',
    default: 'none; required in production',
    meaning: 'PEM of the authority that signs the nodes’ certificates, and nothing else.',
  },
  { name: 'CLUSTER_TLS_CERT_FILE', default: 'none; required in production', meaning: 'Certificate of this node, PEM.' },
  {
    name: 'CLUSTER_TLS_KEY_FILE',
    default: 'none; required in production',
    meaning: 'Private key of that certificate, PEM.',
  },
  {
    name: 'CLUSTER_SECRET',
    default: 'none',
    meaning:
      'At least 16 characters that all nodes share. Enough in development mode; beside certificates in production.',
  },
  { name: 'LEASE_TTL_MS', default: String(defaultTimings.leaseTtlMs), meaning: 'How long a lease of a shard lasts.' },
  { name: 'LEASE_RENEW_MS', default: String(defaultTimings.renewEveryMs), meaning: 'How often leases are renewed.' },
  {
    name: 'LEASE_MARGIN_MS',
    default: String(defaultTimings.marginMs),
    meaning: 'How long before its end a node stops to believe in a lease.',
  },
  {
    name: 'REBALANCE_QUIET_MS',
    default: String(defaultTimings.quietMs),
    meaning: 'How long after a change of nodes shards stay where they are.',
  },
]);

/** Reads the configuration of a clustered node. Throws ConfigError or StartError. */
export function readClusterConfig(env: Environment): ClusterConfig {
  const internalHost = text(env, 'INTERNAL_HOST') ?? '0.0.0.0';
  const node = readConfig({ ...env, OPS_HOST: internalHost, OPS_PORT: text(env, 'INTERNAL_PORT') ?? undefined });
  for (const [name, file] of [
    ['AUTHORITY_KEY_FILE', node.authorityKeyFile],
    ['SECRETS_KEY_FILE', node.secretsKeyFile],
  ] as const)
    if (file === null) throw new ConfigError(`Set ${name}: all nodes of a cluster have the same keys.`);
  const peers = peerSecurity(env);
  if (node.mode === 'production' && peers.tls === null)
    throw new ConfigError(
      'For SVC_MODE=production also set CLUSTER_TLS_CA_FILE, CLUSTER_TLS_CERT_FILE and CLUSTER_TLS_KEY_FILE: nodes prove themselves by certificates.',
    );
  const isEveryAddress = internalHost === '0.0.0.0' || internalHost === '::';
  return Object.freeze({
    node,
    nodeId: nodeId(env),
    redisUrl: redisUrl(env),
    placement: placementName(env),
    cassandra: cassandraSettings(env),
    advertise: text(env, 'ADVERTISE_ADDRESS') ?? (isEveryAddress ? hostname() : internalHost),
    peers,
    timings: timings(env),
  });
}

/** What the command line needs to reach a cluster's Redis. */
export function readRedisConfig(env: Environment): { readonly redisUrl: string; readonly placement: string } {
  return { redisUrl: redisUrl(env), placement: placementName(env) };
}

/** host:port for others, once the internal port is known. */
export function advertisedAddress(advertise: string, port: number): string {
  const hasPort = /^(\[.+\]|[^:]+):\d+$/.test(advertise);
  if (hasPort) return advertise;
  return advertise.includes(':') && !advertise.startsWith('[') ? `[${advertise}]:${port}` : `${advertise}:${port}`;
}

function nodeId(env: Environment): string {
  const id = text(env, 'NODE_ID') ?? `${hostname()}-${randomBytes(3).toString('hex')}`;
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(id))
    throw new ConfigError('Set NODE_ID to at most 128 letters, digits, dots, hyphens and underscores.');
  return id;
}

function redisUrl(env: Environment): string {
  const url = text(env, 'REDIS_URL') ?? '';
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url))
    throw new ConfigError('Set REDIS_URL to the address of Redis, such as redis://redis:6379.');
  return url;
}

function placementName(env: Environment): string {
  const name = text(env, 'CLUSTER_NAME') ?? defaultPlacement;
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(name))
    throw new ConfigError('Set CLUSTER_NAME to at most 64 letters, digits, dots, hyphens and underscores.');
  return name;
}

function peerSecurity(env: Environment): PeerSecurity {
  const secret = text(env, 'CLUSTER_SECRET');
  if (secret !== null && secret.length < secretCharactersMin)
    throw new ConfigError(`Set CLUSTER_SECRET to at least ${secretCharactersMin} characters, the same on all nodes.`);
  const tls = peerTls(env);
  if (tls === null && secret === null)
    throw new ConfigError(
      'Set CLUSTER_SECRET, or CLUSTER_TLS_CA_FILE, CLUSTER_TLS_CERT_FILE and CLUSTER_TLS_KEY_FILE: nodes have to prove themselves to each other.',
    );
  return { tls, secret };
}

function peerTls(env: Environment): PeerTls | null {
  const names = ['CLUSTER_TLS_CA_FILE', 'CLUSTER_TLS_CERT_FILE', 'CLUSTER_TLS_KEY_FILE'] as const;
  const files = names.map((name) => ({ name, file: text(env, name) }));
  const missing = files.filter(({ file }) => file === null).map(({ name }) => name);
  if (missing.length === names.length) return null;
  if (missing.length > 0)
    throw new ConfigError(`Set ${missing.join(' and ')} too: nodes’ certificates need all three.`);
  const [ca, cert, key] = files.map(({ name, file }) => pem(name, file ?? ''));
  return ca === undefined || cert === undefined || key === undefined ? null : { ca, cert, key };
}

function pem(name: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    throw new ConfigError(`Set ${name} to a PEM file that this user may read; ${file} is none.`);
  }
}

function timings(env: Environment): PlacementTimings {
  const leaseTtlMs = milliseconds(env, 'LEASE_TTL_MS', defaultTimings.leaseTtlMs);
  const renewEveryMs = milliseconds(env, 'LEASE_RENEW_MS', Math.min(defaultTimings.renewEveryMs, leaseTtlMs / 3));
  const marginMs = milliseconds(env, 'LEASE_MARGIN_MS', Math.min(defaultTimings.marginMs, leaseTtlMs / 6));
  if (renewEveryMs + marginMs >= leaseTtlMs)
    throw new ConfigError('Set LEASE_TTL_MS to more than LEASE_RENEW_MS and LEASE_MARGIN_MS together.');
  const quietMs = milliseconds(env, 'REBALANCE_QUIET_MS', defaultTimings.quietMs);
  return Object.freeze({ ...defaultTimings, leaseTtlMs, renewEveryMs, marginMs, quietMs });
}

function milliseconds(env: Environment, name: string, otherwise: number): number {
  const value = text(env, name);
  if (value === null) return otherwise;
  if (!/^\d{1,7}$/.test(value) || Number(value) === 0)
    throw new ConfigError(
      `Set ${name} to milliseconds, a whole number from 1 to 9999999; it is ${JSON.stringify(value)}.`,
    );
  return Number(value);
}

function text(env: Environment, name: string): string | null {
  const value = env[name]?.trim();
  return value === undefined || value === '' ? null : value;
}
