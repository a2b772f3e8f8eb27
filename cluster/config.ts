import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { type Config, readConfig, refuseOpenSecrets } from '../src/node/config.ts';
import { isHost, isHostWithPort } from '../src/runtime/config/addresses.ts';
import type { PemFile } from '../src/runtime/config/certificates.ts';
import { type Environment, type OptionalSetting, readSetting } from '../src/runtime/config/setting.ts';
import { ConfigError } from '../src/runtime/start-error.ts';
import { type CassandraSettings, cassandraSettings, portOf } from '../src/store/cassandra/session/settings.ts';
import type { PeerBounds } from './peers/peer-stream.ts';
import type { PeerSecurity, PeerTls } from './peers/security.ts';
import { defaultTimings, type PlacementTimings } from './placement/timings.ts';
import { clusterSettings } from './settings.ts';

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
/** ASCII on one line, without spaces at its ends. */
const headerValue = /^[!-~][ -~]*[!-~]$/;
const redisDefaultPort = 6379;

/** Reads the configuration of a clustered node. Throws ConfigError. */
export function readClusterConfig(env: Environment): ClusterConfig {
  const internalHost = readSetting(env, clusterSettings.internalHost);
  const node = inClusterWords(() =>
    // Without OPS_HOST, the loopback check of production mode passes. Other nodes must reach this port, so production
    // mode requires certificates below.
    readConfig({ ...env, OPS_HOST: undefined, OPS_PORT: String(readSetting(env, clusterSettings.internalPort)) }),
  );
  const authorityKeyFile = node.authorityKeyFile ?? refuseMissingKey('AUTHORITY_KEY_FILE');
  const secretsKeyFile = node.secretsKeyFile ?? refuseMissingKey('SECRETS_KEY_FILE');
  const peerFiles = readPeerFiles(env);
  const peers = peerSecurity(env, peerFiles);
  if (node.mode === 'production' && peers.tls === null)
    throw new ConfigError(
      'For SVC_MODE=production also set CLUSTER_TLS_CA_FILE, CLUSTER_TLS_CERT_FILE and CLUSTER_TLS_KEY_FILE: nodes prove themselves by certificates.',
    );
  const { nodeId, peerKeyFile, secretFile, cassandraPasswordFile } = clusterSettings;
  const peerSecrets = [peerKeyFile, secretFile, cassandraPasswordFile];
  refuseOpenSecrets(
    env,
    peerSecrets.map((setting) => [setting.name, readSetting(env, setting)]),
  );
  const isEveryAddress = internalHost === '0.0.0.0' || internalHost === '::';
  return Object.freeze({
    node: Object.freeze({ ...node, authorityKeyFile, secretsKeyFile, opsHost: internalHost }),
    nodeId: readSetting(env, nodeId) ?? nodeId.read(`${hostname()}-${randomBytes(3).toString('hex')}`, nodeId.name),
    ...readRedisConfig(env),
    cassandra: cassandra(env),
    cassandraCaFile: readSetting(env, clusterSettings.cassandraTlsCaFile),
    advertise: readSetting(env, clusterSettings.advertise) ?? (isEveryAddress ? hostname() : internalHost),
    peers,
    peerFiles,
    peerBounds: Object.freeze({
      unsentBytesMax: readSetting(env, clusterSettings.peerUnsentBytes),
      commandsMax: readSetting(env, clusterSettings.peerCommandsMax),
    }),
    timings: timings(env),
    startWaitMs: readSetting(env, clusterSettings.startWaitMs),
    stopDelayMs: readSetting(env, clusterSettings.stopDelaySeconds) * 1_000,
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
  return {
    redisUrl: readSetting(env, clusterSettings.redisUrl) ?? clusterSettings.redisUrl.read(''),
    placement: readSetting(env, clusterSettings.clusterName),
  };
}

/** Returns the host:port at which other nodes reach this one. `port`: the internal port. */
export function advertisedAddress(advertise: string, port: number): string {
  const hasPort = /^(\[.+\]|[^:]+):\d+$/.test(advertise);
  if (hasPort) return advertise;
  return advertise.includes(':') && !advertise.startsWith('[') ? `[${advertise}]:${port}` : `${advertise}:${port}`;
}

/** Returns the ports of Redis and Cassandra. No webhook may go to these backends of the service. */
export function ownBackendPorts(config: Pick<ClusterConfig, 'redisUrl' | 'cassandra'>): ReadonlySet<number> {
  const { port } = new URL(config.redisUrl);
  return new Set([port === '' ? redisDefaultPort : Number(port), ...config.cassandra.contactPoints.map(portOf)]);
}

function cassandra(env: Environment): CassandraSettings {
  const settings = cassandraSettings(env);
  const wrong = settings.contactPoints.find((point) => !isHostWithPort(point) && !isHost(point));
  if (wrong === undefined) return settings;
  throw new ConfigError(
    `Set CASSANDRA_CONTACT_POINTS to addresses of Cassandra, as host:port,host:port; ${JSON.stringify(wrong)} is none.`,
  );
}

function peerSecurity(env: Environment, files: ClusterConfig['peerFiles']): PeerSecurity {
  const secret = clusterSecret(env);
  const place =
    readSetting(env, clusterSettings.secretFile) === null ? 'CLUSTER_SECRET to' : 'CLUSTER_SECRET_FILE to a file with';
  if (secret !== null && secret.length < secretCharactersMin)
    throw new ConfigError(`Set ${place} at least ${secretCharactersMin} characters, the same on all nodes.`);
  // With certificates it is sent in a header.
  if (secret !== null && files !== null && !headerValue.test(secret))
    throw new ConfigError(
      `Set ${place} one line of ASCII characters, as \`openssl rand -base64 32\` prints it, the same on all nodes.`,
    );
  if (files === null && secret === null)
    throw new ConfigError(
      'Set CLUSTER_SECRET, or CLUSTER_TLS_CA_FILE, CLUSTER_TLS_CERT_FILE and CLUSTER_TLS_KEY_FILE: nodes have to prove themselves to each other.',
    );
  const tls = files === null ? null : { ca: files.ca.text, cert: files.cert.text, key: files.key.text };
  return { tls, secret };
}

function clusterSecret(env: Environment): string | null {
  const secret = readSetting(env, clusterSettings.secret);
  const file = readSetting(env, clusterSettings.secretFile);
  if (file === null) return secret;
  if (secret !== null) throw new ConfigError('Set CLUSTER_SECRET or CLUSTER_SECRET_FILE, not both.');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new ConfigError(`Set CLUSTER_SECRET_FILE to a file that this user may read; ${file} is none.`);
  }
}

function readPeerFiles(env: Environment): ClusterConfig['peerFiles'] {
  const { peerCaFile, peerCertFile, peerKeyFile } = clusterSettings;
  const all = [peerCaFile, peerCertFile, peerKeyFile];
  const missing = all.filter((setting) => readSetting(env, setting) === null);
  if (missing.length === all.length) return null;
  if (missing.length > 0)
    throw new ConfigError(
      `Set ${missing.map(({ name }) => name).join(' and ')} too: nodes’ certificates need all three.`,
    );
  const read = (setting: OptionalSetting<string>) => pem(setting.name, readSetting(env, setting) ?? '');
  return Object.freeze({ ca: read(peerCaFile), cert: read(peerCertFile), key: read(peerKeyFile) });
}

function pem(variable: string, file: string): PeerFile {
  try {
    return { variable, file, text: readFileSync(file) };
  } catch {
    throw new ConfigError(`Set ${variable} to a PEM file that this user may read; ${file} is none.`);
  }
}

function timings(env: Environment): PlacementTimings {
  const leaseTtlMs = readSetting(env, clusterSettings.leaseTtlMs);
  const atMost = (otherwise: number, part: number) => Math.min(otherwise, Math.floor(leaseTtlMs / part));
  const renewEveryMs = readSetting(env, clusterSettings.leaseRenewMs) ?? atMost(defaultTimings.renewEveryMs, 3);
  const marginMs = readSetting(env, clusterSettings.leaseMarginMs) ?? atMost(defaultTimings.marginMs, 6);
  if (marginMs >= renewEveryMs)
    throw new ConfigError(`Set LEASE_MARGIN_MS to less than LEASE_RENEW_MS: they are ${marginMs} and ${renewEveryMs}.`);
  if (renewEveryMs + marginMs >= leaseTtlMs)
    throw new ConfigError('Set LEASE_TTL_MS to more than LEASE_RENEW_MS and LEASE_MARGIN_MS together.');
  const quietMs = readSetting(env, clusterSettings.rebalanceQuietMs);
  return Object.freeze({ ...defaultTimings, leaseTtlMs, renewEveryMs, marginMs, quietMs });
}
