import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import {
  boundOf,
  type Config,
  countMax,
  type Environment,
  host,
  mebibyte,
  mebibytesMax,
  readConfig,
  refuseOpenSecrets,
  text,
} from '../src/node/config.ts';
import { isHost, isHostWithPort } from '../src/runtime/config/addresses.ts';
import type { PemFile } from '../src/runtime/config/certificates.ts';
import { ConfigError } from '../src/runtime/start-error.ts';
import { type CassandraSettings, cassandraSettings, portOf } from '../src/store/cassandra/session/settings.ts';
import { defaultPlacement } from './config-table.ts';
import { defaultPeerBounds, type PeerBounds } from './peers/peer-stream.ts';
import type { PeerSecurity, PeerTls } from './peers/security.ts';
import { isNodeId } from './placement/node-id.ts';
import { defaultTimings, type PlacementTimings } from './placement/timings.ts';
import { countsForMaxMs } from './redis/lease-scripts.ts';

type PeerFile = PemFile & { readonly text: Buffer };

/** All nodes of a cluster have the same keys, so each is given its files. */
type ClusterNodeConfig = Config & { readonly authorityKeyFile: string; readonly secretsKeyFile: string };

export interface ClusterConfig {
  readonly node: ClusterNodeConfig;
  readonly nodeId: string;
  readonly redisUrl: string;
  /** The cluster's name in Redis: several clusters may share one Redis. */
  readonly placement: string;
  readonly cassandra: CassandraSettings;
  /** The file of `cassandra.tlsCa`. null: no TLS to Cassandra. */
  readonly cassandraCaFile: string | null;
  /** Where other nodes reach this one: `host` or `host:port`. The default port is the internal port. */
  readonly advertise: string;
  readonly peers: PeerSecurity;
  /** The files of the certificates in `peers`. null: nodes authenticate with the secret alone. */
  readonly peerFiles: { readonly [part in keyof PeerTls]: PeerFile } | null;
  readonly peerBounds: PeerBounds;
  readonly timings: PlacementTimings;
  /** How long a starting node waits for its store. 0: it exits at once if the store cannot be used. */
  readonly startWaitMs: number;
  /** The least time for which a stopping node still accepts calls while it reports that it is not ready. */
  readonly stopDelayMs: number;
}

const secretCharactersMin = 16;
/** A shorter lease leaves no time for several renewals over the network before it ends. */
const leaseTtlMinMs = 1_000;
const timingMinMs = 50;
const stopDelayMaxSeconds = 600;
const redisDefaultPort = 6379;

/** Reads the configuration of a clustered node. Throws ConfigError or StartError. */
export function readClusterConfig(env: Environment): ClusterConfig {
  const internalHost = host(env, 'INTERNAL_HOST', '0.0.0.0');
  const node = inClusterWords(() =>
    // Without OPS_HOST, the loopback check of production mode passes. Other nodes must reach this port, so production
    // mode requires certificates below.
    readConfig({ ...env, OPS_HOST: undefined, OPS_PORT: text(env, 'INTERNAL_PORT') ?? undefined }),
  );
  const authorityKeyFile = node.authorityKeyFile ?? refuseMissingKey('AUTHORITY_KEY_FILE');
  const secretsKeyFile = node.secretsKeyFile ?? refuseMissingKey('SECRETS_KEY_FILE');
  const peerFiles = readPeerFiles(env);
  const peers = peerSecurity(env, peerFiles);
  if (node.mode === 'production' && peers.tls === null)
    throw new ConfigError(
      'For SVC_MODE=production also set CLUSTER_TLS_CA_FILE, CLUSTER_TLS_CERT_FILE and CLUSTER_TLS_KEY_FILE: nodes prove themselves by certificates.',
    );
  const peerSecrets = ['CLUSTER_TLS_KEY_FILE', 'CLUSTER_SECRET_FILE', 'CASSANDRA_PASSWORD_FILE'];
  refuseOpenSecrets(
    env,
    peerSecrets.map((name) => [name, text(env, name)]),
  );
  const isEveryAddress = internalHost === '0.0.0.0' || internalHost === '::';
  return Object.freeze({
    node: Object.freeze({ ...node, authorityKeyFile, secretsKeyFile, opsHost: internalHost }),
    nodeId: nodeId(env),
    redisUrl: redisUrl(env),
    placement: placementName(env),
    cassandra: cassandra(env),
    cassandraCaFile: text(env, 'CASSANDRA_TLS_CA_FILE'),
    advertise: advertiseAddress(env) ?? (isEveryAddress ? hostname() : internalHost),
    peers,
    peerFiles,
    peerBounds: peerBounds(env),
    timings: timings(env),
    startWaitMs: milliseconds(env, 'START_WAIT_MS', 0, 0),
    stopDelayMs: count(env, 'STOP_DELAY_SECONDS', 'seconds', 0, 0, stopDelayMaxSeconds) * 1_000,
  });
}

function refuseMissingKey(variable: string): never {
  throw new ConfigError(`Set ${variable}: all nodes of a cluster have the same keys.`);
}

/** Renames the variables of a single node in a ConfigError. */
function inClusterWords<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError(internalWords(error.message)) : error;
  }
}

/** Replaces OPS_PORT and OPS_HOST in a sentence by the variables of a clustered node. */
export function internalWords(sentence: string): string {
  return sentence.replaceAll('OPS_PORT', 'INTERNAL_PORT').replaceAll('OPS_HOST', 'INTERNAL_HOST');
}

/** Reads what the command line needs to reach a cluster's Redis. Throws ConfigError. */
export function readRedisConfig(env: Environment): { readonly redisUrl: string; readonly placement: string } {
  return { redisUrl: redisUrl(env), placement: placementName(env) };
}

/** Returns the host:port at which other nodes reach this one. `port`: the internal port. */
export function advertisedAddress(advertise: string, port: number): string {
  const hasPort = /^(\[.+\]|[^:]+):\d+$/.test(advertise);
  if (hasPort) return advertise;
  return advertise.includes(':') && !advertise.startsWith('[') ? `[${advertise}]:${port}` : `${advertise}:${port}`;
}

/** Returns the ports of Redis and Cassandra. No webhook may go to these backends of the service. */
export function backendPorts(config: Pick<ClusterConfig, 'redisUrl' | 'cassandra'>): ReadonlySet<number> {
  const { port } = new URL(config.redisUrl);
  return new Set([port === '' ? redisDefaultPort : Number(port), ...config.cassandra.contactPoints.map(portOf)]);
}

function advertiseAddress(env: Environment): string | null {
  const value = text(env, 'ADVERTISE_ADDRESS');
  if (value === null || isHost(value) || isHostWithPort(value)) return value;
  throw new ConfigError(
    `Set ADVERTISE_ADDRESS to host or host:port, without a scheme; it is ${JSON.stringify(value)}.`,
  );
}

function nodeId(env: Environment): string {
  const id = text(env, 'NODE_ID') ?? `${hostname()}-${randomBytes(3).toString('hex')}`;
  if (!isNodeId(id))
    throw new ConfigError('Set NODE_ID to at most 128 letters, digits, dots, hyphens and underscores.');
  return id;
}

function redisUrl(env: Environment): string {
  const url = text(env, 'REDIS_URL') ?? '';
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const isRedis = parsed !== null && /^rediss?:$/.test(parsed.protocol) && url.startsWith(`${parsed.protocol}//`);
  // The message does not show the URL: it may hold a password.
  if (!isRedis || parsed.hostname === '' || parsed.port === '0' || !/^\/?\d{0,4}$/.test(parsed.pathname))
    throw new ConfigError(
      'Set REDIS_URL to the address of Redis, such as redis://redis:6379 or rediss://redis:6380/1.',
    );
  return url;
}

function cassandra(env: Environment): CassandraSettings {
  const settings = cassandraSettings(env);
  const wrong = settings.contactPoints.find((point) => !isHostWithPort(point) && !isHost(point));
  if (wrong === undefined) return settings;
  throw new ConfigError(
    `Set CASSANDRA_CONTACT_POINTS to addresses of Cassandra, as host:port,host:port; ${JSON.stringify(wrong)} is none.`,
  );
}

function placementName(env: Environment): string {
  const name = text(env, 'CLUSTER_NAME') ?? defaultPlacement;
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(name))
    throw new ConfigError('Set CLUSTER_NAME to at most 64 letters, digits, dots, hyphens and underscores.');
  return name;
}

function peerSecurity(env: Environment, files: ClusterConfig['peerFiles']): PeerSecurity {
  const secret = clusterSecret(env);
  if (secret !== null && secret.length < secretCharactersMin)
    throw new ConfigError(
      text(env, 'CLUSTER_SECRET_FILE') === null
        ? `Set CLUSTER_SECRET to at least ${secretCharactersMin} characters, the same on all nodes.`
        : `Set CLUSTER_SECRET_FILE to a file with at least ${secretCharactersMin} characters, the same on all nodes.`,
    );
  if (files === null && secret === null)
    throw new ConfigError(
      'Set CLUSTER_SECRET, or CLUSTER_TLS_CA_FILE, CLUSTER_TLS_CERT_FILE and CLUSTER_TLS_KEY_FILE: nodes have to prove themselves to each other.',
    );
  const tls = files === null ? null : { ca: files.ca.text, cert: files.cert.text, key: files.key.text };
  return { tls, secret };
}

function peerBounds(env: Environment): PeerBounds {
  const unsentMib = boundOf(env, 'PEER_UNSENT_MIB', defaultPeerBounds.unsentBytesMax / mebibyte, mebibytesMax, 4);
  return Object.freeze({
    commandsMax: boundOf(env, 'PEER_COMMANDS_MAX', defaultPeerBounds.commandsMax, countMax, 64),
    unsentBytesMax: unsentMib * mebibyte,
  });
}

function clusterSecret(env: Environment): string | null {
  const secret = text(env, 'CLUSTER_SECRET');
  const file = text(env, 'CLUSTER_SECRET_FILE');
  if (file === null) return secret;
  if (secret !== null) throw new ConfigError('Set CLUSTER_SECRET or CLUSTER_SECRET_FILE, not both.');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new ConfigError(`Set CLUSTER_SECRET_FILE to a file that this user may read; ${file} is none.`);
  }
}

function readPeerFiles(env: Environment): ClusterConfig['peerFiles'] {
  const variables = ['CLUSTER_TLS_CA_FILE', 'CLUSTER_TLS_CERT_FILE', 'CLUSTER_TLS_KEY_FILE'] as const;
  const missing = variables.filter((variable) => text(env, variable) === null);
  if (missing.length === variables.length) return null;
  if (missing.length > 0)
    throw new ConfigError(`Set ${missing.join(' and ')} too: nodes’ certificates need all three.`);
  const read = (variable: (typeof variables)[number]) => pem(variable, text(env, variable) ?? '');
  const [ca, cert, key] = variables;
  return Object.freeze({ ca: read(ca), cert: read(cert), key: read(key) });
}

function pem(variable: string, file: string): PeerFile {
  try {
    return { variable, file, text: readFileSync(file) };
  } catch {
    throw new ConfigError(`Set ${variable} to a PEM file that this user may read; ${file} is none.`);
  }
}

function timings(env: Environment): PlacementTimings {
  const leaseTtlMs = milliseconds(env, 'LEASE_TTL_MS', defaultTimings.leaseTtlMs, leaseTtlMinMs, countsForMaxMs);
  const part = (of: number) => Math.floor(leaseTtlMs / of);
  const renewEveryMs = milliseconds(env, 'LEASE_RENEW_MS', Math.min(defaultTimings.renewEveryMs, part(3)), timingMinMs);
  const marginMs = milliseconds(env, 'LEASE_MARGIN_MS', Math.min(defaultTimings.marginMs, part(6)), timingMinMs);
  if (marginMs >= renewEveryMs)
    throw new ConfigError(`Set LEASE_MARGIN_MS to less than LEASE_RENEW_MS: they are ${marginMs} and ${renewEveryMs}.`);
  if (renewEveryMs + marginMs >= leaseTtlMs)
    throw new ConfigError('Set LEASE_TTL_MS to more than LEASE_RENEW_MS and LEASE_MARGIN_MS together.');
  const quietMs = milliseconds(env, 'REBALANCE_QUIET_MS', defaultTimings.quietMs);
  return Object.freeze({ ...defaultTimings, leaseTtlMs, renewEveryMs, marginMs, quietMs });
}

function milliseconds(env: Environment, name: string, otherwise: number, min = 1, max = 9_999_999): number {
  return count(env, name, 'milliseconds', otherwise, min, max);
}

function count(env: Environment, name: string, unit: string, otherwise: number, min: number, max: number): number {
  const value = text(env, name);
  if (value === null) return otherwise;
  if (!/^\d{1,7}$/.test(value) || Number(value) < min || Number(value) > max)
    throw new ConfigError(
      `Set ${name} to ${unit}, a whole number from ${min} to ${max}; it is ${JSON.stringify(value)}.`,
    );
  return Number(value);
}
