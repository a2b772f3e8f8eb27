import ipaddr from 'ipaddr.js';
import type { GrpcBounds } from '../rpc/grpc/connections.ts';
import type { BucketSize } from '../rpc/pipeline/rate-limit.ts';
import { openSecretFiles } from '../runtime/config/secret-files.ts';
import { type Environment, type OptionalSetting, readSetting, type Setting } from '../runtime/config/setting.ts';
import type { PlaceBounds } from '../runtime/limits/fair-places.ts';
import { defaultMemoryBudgetBytes } from '../runtime/limits/memory-budget.ts';
import { ConfigError } from '../runtime/start-error.ts';
import type { LogLevel } from '../runtime/telemetry/log.ts';
import { nodeSettings } from './settings.ts';

type Mode = 'development' | 'production';

/** The environment, read once, checked and frozen. A port may be 0: any free port. */
export interface Config {
  readonly mode: Mode;
  readonly host: string;
  readonly port: number;
  readonly grpcPort: number;
  readonly opsHost: string;
  readonly opsPort: number;
  readonly dataDir: string;
  /** null: made on first start and stored in the data directory. */
  readonly authorityKeyFile: string | null;
  readonly secretsKeyFile: string | null;
  /** Of the key that signs checkpoints. */
  readonly logKeyFile: string | null;
  /** Name of the service in its checkpoints. null: the store has one, or makes one on first start. */
  readonly logOrigin: string | null;
  /** null: both public ports are without TLS. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  /** A proxy in front terminates TLS. */
  readonly tlsTerminated: boolean;
  /** Exact origins, or `*` alone. Empty: no cross-origin calls. */
  readonly corsOrigins: readonly string[];
  /** Addresses and networks whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  readonly logLevel: LogLevel;
  /** Ports on loopback that no webhook goes to in development mode, besides the service's own. */
  readonly webhookClosedPorts: readonly number[];
  /** What requests, answers, reads and streams may hold in memory together, bytes. */
  readonly memoryBudgetBytes: number;
  /** Of each public port. */
  readonly connectionsMax: number;
  /** Of one connection of the gRPC port. */
  readonly grpcBounds: GrpcBounds;
  readonly reads: PlaceBounds;
  /** Streams that follow a ledger or a master at once: all of the node, and those of one actor. */
  readonly followers: { readonly total: number; readonly perActor: number };
  /** Active webhook subscriptions of all actors. */
  readonly subscriptionsMax: number;
  readonly sandboxRunsWaiting: number;
  /** Changes that wait for one record, and creations that wait for one actor. */
  readonly changesWaiting: number;
  /** Beyond these bounds calls are `overloaded`. */
  readonly queues: {
    /** Commands that wait for one ledger, and their bytes. */
    readonly ledgerCommandsMax: number;
    readonly ledgerBytesMax: number;
    readonly signaturesMax: number;
  };
  readonly rateLimits: {
    /** By address, for calls without a credential that create something. */
    readonly create: BucketSize;
    /** By API key, for appends. */
    readonly append: BucketSize;
    /** By API key, for all other calls. */
    readonly call: BucketSize;
  };
}

/** Throws ConfigError; in production mode it lists all that is wrong. */
export function readConfig(env: Environment): Config {
  const mode = readSetting(env, nodeSettings.mode);
  const certFile = readSetting(env, nodeSettings.tlsCertFile);
  const keyFile = readSetting(env, nodeSettings.tlsKeyFile);
  if ((certFile === null) !== (keyFile === null)) {
    const { name } = certFile === null ? nodeSettings.tlsCertFile : nodeSettings.tlsKeyFile;
    throw new ConfigError(`Set ${name} too: TLS needs both the certificate and its key.`);
  }
  const memoryBudgetBytes = readSetting(env, nodeSettings.memoryBudgetBytes) ?? defaultMemoryBudgetBytes();
  const connectionsMax = readSetting(env, nodeSettings.connectionsMax) ?? defaultConnections(memoryBudgetBytes);
  const config: Config = {
    mode,
    host: readSetting(env, nodeSettings.host),
    port: readSetting(env, nodeSettings.port),
    grpcPort: readSetting(env, nodeSettings.grpcPort),
    opsHost: readSetting(env, nodeSettings.opsHost),
    opsPort: readSetting(env, nodeSettings.opsPort),
    dataDir: readSetting(env, nodeSettings.dataDir),
    authorityKeyFile: readSetting(env, nodeSettings.authorityKeyFile),
    secretsKeyFile: readSetting(env, nodeSettings.secretsKeyFile),
    logKeyFile: readSetting(env, nodeSettings.logKeyFile),
    logOrigin: readSetting(env, nodeSettings.logOrigin),
    tls: certFile === null || keyFile === null ? null : Object.freeze({ certFile, keyFile }),
    tlsTerminated: readSetting(env, nodeSettings.tlsTerminated),
    corsOrigins: Object.freeze(readSetting(env, nodeSettings.corsOrigins) ?? []),
    trustedProxies: Object.freeze(readSetting(env, nodeSettings.trustedProxies) ?? []),
    logLevel: readSetting(env, nodeSettings.logLevel),
    webhookClosedPorts: Object.freeze(readSetting(env, nodeSettings.webhookClosedPorts) ?? []),
    memoryBudgetBytes,
    connectionsMax,
    grpcBounds: Object.freeze({
      connectionRequestBytes: readSetting(env, nodeSettings.connectionRequestBytes),
      connectionAnswerBytes: readSetting(env, nodeSettings.connectionAnswerBytes),
    }),
    reads: Object.freeze({
      total: readSetting(env, nodeSettings.readsAtOnce) ?? defaultReadsAtOnce(memoryBudgetBytes),
      perCaller: readSetting(env, nodeSettings.readsAtOncePerCaller),
      waiting: readSetting(env, nodeSettings.readsWaiting),
    }),
    followers: Object.freeze({
      total: readSetting(env, nodeSettings.followersMax) ?? defaultFollowers(connectionsMax),
      perActor: readSetting(env, nodeSettings.followersPerActorMax),
    }),
    subscriptionsMax: readSetting(env, nodeSettings.subscriptionsMax) ?? defaultSubscriptions(memoryBudgetBytes),
    sandboxRunsWaiting: readSetting(env, nodeSettings.sandboxRunsWaiting),
    changesWaiting: readSetting(env, nodeSettings.changesWaiting),
    queues: Object.freeze({
      ledgerCommandsMax: readSetting(env, nodeSettings.ledgerQueueMax),
      ledgerBytesMax: readSetting(env, nodeSettings.ledgerQueueBytes),
      signaturesMax: readSetting(env, nodeSettings.signatureQueueMax),
    }),
    rateLimits: Object.freeze({
      create: bucket(env, nodeSettings.createPerMinute, 60, nodeSettings.createBurst),
      call: bucket(env, nodeSettings.callPerSecond, 1, nodeSettings.callBurst),
      append: bucket(env, nodeSettings.appendPerSecond, 1, nodeSettings.appendBurst),
    }),
  };
  refuseSharedPorts(config);
  if (mode === 'production') refuseUnsafe(config);
  return Object.freeze(config);
}

/** Throws ConfigError in production mode if one of the files is open to other users. */
export function refuseOpenSecrets(env: Environment, files: Parameters<typeof openSecretFiles>[0]): void {
  const open = readSetting(env, nodeSettings.mode) === 'production' ? openSecretFiles(files) : [];
  if (open.length > 0) throw new ConfigError(`For SVC_MODE=production also ${open.join('; ')}.`);
}

function refuseSharedPorts(config: Config): void {
  const ports = [
    ['PORT', config.port],
    ['GRPC_PORT', config.grpcPort],
    ['OPS_PORT', config.opsPort],
  ] as const;
  for (const [at, [name, port]] of ports.entries()) {
    const twin = ports.slice(0, at).find(([, other]) => other === port && port !== 0);
    if (twin !== undefined) throw new ConfigError(`Set ${name} to another port than ${twin[0]}: both are ${port}.`);
  }
}

function refuseUnsafe(config: Config): void {
  const missing: string[] = [];
  if (config.authorityKeyFile === null) missing.push('AUTHORITY_KEY_FILE (the authority’s Ed25519 key)');
  if (config.secretsKeyFile === null) missing.push('SECRETS_KEY_FILE (the key for stored secrets)');
  if (config.logOrigin === null) missing.push('LOG_ORIGIN (the name of the service in its checkpoints)');
  if (config.logKeyFile === null) missing.push('LOG_KEY_FILE (the Ed25519 key that signs checkpoints)');
  if (config.tls === null && !config.tlsTerminated) {
    missing.push('TLS_CERT_FILE and TLS_KEY_FILE (or TLS_TERMINATED=1 behind a proxy that speaks TLS)');
  }
  const asked = missing.length > 0 ? [`set ${missing.join(', ')}`] : [];
  if (!isLoopback(config.opsHost)) asked.push('set OPS_HOST to a loopback address: the internal port is never public');
  if (config.corsOrigins.includes('*')) asked.push('name in CORS_ORIGINS the origins that may call: * is every site');
  asked.push(
    ...openSecretFiles([
      ['AUTHORITY_KEY_FILE', config.authorityKeyFile],
      ['SECRETS_KEY_FILE', config.secretsKeyFile],
      ['LOG_KEY_FILE', config.logKeyFile],
      ['TLS_KEY_FILE', config.tls?.keyFile ?? null],
    ]),
  );
  if (asked.length > 0) throw new ConfigError(`For SVC_MODE=production also ${asked.join('; ')}.`);
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || (ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback');
}

/** A long read holds at most some 11 MiB, and answers that clients have not taken need room too. */
const BYTES_OF_READ = 16 * 1024 * 1024;
const READS_AT_ONCE_DEFAULT_MAX = 16;

/** Over HTTP each takes a connection. */
function defaultFollowers(connectionsMax: number): number {
  return Math.max(1, Math.min(10_000, Math.floor((connectionsMax * 5) / 8)));
}

/** An idle connection and the head of a request that has not ended take some 16 KiB of the heap. */
function defaultConnections(memoryBytes: number): number {
  return Math.min(20_000, Math.ceil(memoryBytes / (16 * 1_024)));
}

/** The largest takes 20 KB of the heap, so that all of them take a third of a heap of four times the budget. */
function defaultSubscriptions(memoryBytes: number): number {
  return Math.min(1_000_000, Math.ceil(memoryBytes / (16 * 1_024)));
}

function defaultReadsAtOnce(memoryBytes: number): number {
  return Math.max(2, Math.min(READS_AT_ONCE_DEFAULT_MAX, Math.floor(memoryBytes / BYTES_OF_READ)));
}

function bucket(
  env: Environment,
  rate: OptionalSetting<number> & { readonly production: number },
  perS: number,
  burst: Setting<number>,
): BucketSize {
  const inMode = readSetting(env, nodeSettings.mode) === 'production' ? rate.production : 0;
  const perSecond = (readSetting(env, rate) ?? inMode) / perS;
  const held = readSetting(env, burst);
  if (perSecond > 0 && held < 1)
    throw new ConfigError(`Set ${burst.name} to at least 1, or ${rate.name} to 0 for no limit.`);
  return Object.freeze({ perSecond, burst: held });
}
