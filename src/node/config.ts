import ipaddr from 'ipaddr.js';
import proxyAddr from 'proxy-addr';
import { mailboxBytesMax, mailboxCommandsMax } from '../actors/bounds.ts';
import { isServiceName } from '../domain/log/origin.ts';
import type { GrpcBounds } from '../rpc/grpc/connections.ts';
import type { BucketSize } from '../rpc/pipeline/rate-limit.ts';
import { isHost } from '../runtime/config/addresses.ts';
import { openSecretFiles } from '../runtime/config/secret-files.ts';
import type { PlaceBounds } from '../runtime/limits/fair-places.ts';
import { defaultMemoryBudgetBytes } from '../runtime/limits/memory-budget.ts';
import { ConfigError } from '../runtime/start-error.ts';
import type { LogLevel } from '../runtime/telemetry/log.ts';
import { defaultWaitingMax } from '../service/signatures/verifying-threads.ts';

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
  readonly sandboxRunsWaiting: number;
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

export type Environment = { readonly [name: string]: string | undefined };

/** An empty variable counts as not set. Throws ConfigError; in production mode it lists all that is wrong. */
export function readConfig(env: Environment): Config {
  const mode = modeOf(env);
  const certFile = text(env, 'TLS_CERT_FILE');
  const keyFile = text(env, 'TLS_KEY_FILE');
  if ((certFile === null) !== (keyFile === null)) {
    const missing = certFile === null ? 'TLS_CERT_FILE' : 'TLS_KEY_FILE';
    throw new ConfigError(`Set ${missing} too: TLS needs both the certificate and its key.`);
  }
  const limited = mode === 'production';
  const memoryBytes = memoryBudgetBytes(env);
  const config: Config = {
    mode,
    host: host(env, 'HOST', '0.0.0.0'),
    port: portNumber(env, 'PORT', 8080),
    grpcPort: portNumber(env, 'GRPC_PORT', 50_051),
    opsHost: host(env, 'OPS_HOST', '127.0.0.1'),
    opsPort: portNumber(env, 'OPS_PORT', 9100),
    dataDir: text(env, 'DATA_DIR') ?? './data',
    authorityKeyFile: text(env, 'AUTHORITY_KEY_FILE'),
    secretsKeyFile: text(env, 'SECRETS_KEY_FILE'),
    logKeyFile: text(env, 'LOG_KEY_FILE'),
    logOrigin: logOrigin(env),
    tls: certFile === null || keyFile === null ? null : Object.freeze({ certFile, keyFile }),
    tlsTerminated: flag(env, 'TLS_TERMINATED'),
    corsOrigins: Object.freeze(list(env, 'CORS_ORIGINS').map(checkedOrigin)),
    trustedProxies: Object.freeze(checkedProxies(list(env, 'TRUSTED_PROXIES'))),
    logLevel: oneOf(env, 'LOG_LEVEL', ['fatal', 'error', 'warn', 'info', 'debug', 'silent'], 'info'),
    webhookClosedPorts: Object.freeze(list(env, 'WEBHOOK_CLOSED_PORTS').map(checkedPort)),
    memoryBudgetBytes: memoryBytes,
    connectionsMax: boundOf(env, 'CONNECTIONS_MAX', defaultConnections(memoryBytes), countMax),
    grpcBounds: Object.freeze({
      connectionRequestBytes: connectionBytes(env, 'GRPC_CONNECTION_REQUEST_MIB', 8, 2),
      connectionAnswerBytes: connectionBytes(env, 'GRPC_CONNECTION_ANSWER_MIB', 32, 8),
    }),
    reads: Object.freeze({
      total: boundOf(env, 'READS_AT_ONCE', defaultReadsAtOnce(memoryBytes), countMax),
      perCaller: boundOf(env, 'READS_AT_ONCE_PER_CALLER', 4, countMax),
      waiting: boundOf(env, 'READS_WAITING', 1_000, countMax),
    }),
    followers: Object.freeze({
      total: boundOf(env, 'FOLLOWERS_MAX', 10_000, countMax),
      perActor: boundOf(env, 'FOLLOWERS_PER_ACTOR_MAX', 100, countMax),
    }),
    sandboxRunsWaiting: boundOf(env, 'SANDBOX_RUNS_WAITING', 64, countMax),
    queues: Object.freeze({
      ledgerCommandsMax: boundOf(env, 'LEDGER_QUEUE_MAX', mailboxCommandsMax, countMax),
      ledgerBytesMax: boundOf(env, 'LEDGER_QUEUE_MIB', mailboxBytesMax / mebibyte, mebibytesMax) * mebibyte,
      signaturesMax: boundOf(env, 'SIGNATURE_QUEUE_MAX', defaultWaitingMax, countMax),
    }),
    rateLimits: Object.freeze({
      create: bucket(env, 'RATE_LIMIT_CREATE_PER_MINUTE', limited ? 600 : 0, 60, 'RATE_LIMIT_CREATE_BURST', 300),
      call: bucket(env, 'RATE_LIMIT_CALL_PER_SECOND', limited ? 200 : 0, 1, 'RATE_LIMIT_CALL_BURST', 500),
      append: bucket(env, 'RATE_LIMIT_APPEND_PER_SECOND', limited ? 5000 : 0, 1, 'RATE_LIMIT_APPEND_BURST', 5000),
    }),
  };
  refuseSharedPorts(config);
  if (mode === 'production') refuseUnsafe(config);
  return Object.freeze(config);
}

function modeOf(env: Environment): Mode {
  return oneOf(env, 'SVC_MODE', ['development', 'production'], 'development');
}

/** Throws ConfigError in production mode if one of the files is open to other users. */
export function refuseOpenSecrets(env: Environment, files: Parameters<typeof openSecretFiles>[0]): void {
  const open = modeOf(env) === 'production' ? openSecretFiles(files) : [];
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

/** The value of a variable without white space around it. null: it is not set, or empty. */
export function text(env: Environment, name: string): string | null {
  const value = env[name]?.trim();
  return value === undefined || value === '' ? null : value;
}

function logOrigin(env: Environment): string | null {
  const value = text(env, 'LOG_ORIGIN');
  if (value === null || isServiceName(value)) return value;
  throw new ConfigError(
    `Set LOG_ORIGIN to the base URL of the API without its scheme, in lower case, such as ledger.example/v1; it is ${JSON.stringify(value)}.`,
  );
}

/** Throws ConfigError unless the value is an IP address or a host name. */
export function host(env: Environment, name: string, otherwise: string): string {
  const value = text(env, name) ?? otherwise;
  if (isHost(value)) return value;
  throw new ConfigError(
    `Set ${name} to an IP address or a host name, without scheme, brackets or port; it is ${JSON.stringify(value)}.`,
  );
}

function list(env: Environment, name: string): string[] {
  return (text(env, name) ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function oneOf<T extends string>(env: Environment, name: string, values: readonly T[], otherwise: T): T {
  const value = text(env, name);
  if (value === null) return otherwise;
  const found = values.find((allowed) => allowed === value);
  if (found === undefined)
    throw new ConfigError(`Set ${name} to ${values.join(', ')}; it is ${JSON.stringify(value)}.`);
  return found;
}

function flag(env: Environment, name: string): boolean {
  return ['1', 'true'].includes(oneOf(env, name, ['0', '1', 'false', 'true'], '0'));
}

function wholeNumber(env: Environment, name: string, otherwise: number, max: number): number {
  const value = text(env, name);
  if (value === null) return otherwise;
  const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  if (!(number <= max))
    throw new ConfigError(`Set ${name} to a whole number from 0 to ${max}; it is ${JSON.stringify(value)}.`);
  return number;
}

function portNumber(env: Environment, name: string, otherwise: number): number {
  return wholeNumber(env, name, otherwise, 65_535);
}

function atLeast(name: string, value: number, min: number, why: string): number {
  if (value < min) throw new ConfigError(`Set ${name} to at least ${min}: ${why}.`);
  return value;
}

function memoryBudgetBytes(env: Environment): number {
  const value = wholeNumber(env, 'MEMORY_BUDGET_MIB', 0, 65_536);
  if (value === 0) return defaultMemoryBudgetBytes();
  return atLeast('MEMORY_BUDGET_MIB', value, 32, 'two large calls need as much') * mebibyte;
}

/** A bound below `min` would refuse the largest message, or the largest answer, of any client. */
function connectionBytes(env: Environment, name: string, otherwise: number, min: number): number {
  return atLeast(name, wholeNumber(env, name, otherwise, 1_024), min, 'the largest call needs as much') * mebibyte;
}

/** A long read holds at most some 11 MiB, and answers that clients have not taken need room too. */
const BYTES_OF_READ = 16 * 1024 * 1024;
const READS_AT_ONCE_DEFAULT_MAX = 16;

/** An idle connection and the head of a request that has not ended take some 16 KiB of the heap. */
function defaultConnections(memoryBytes: number): number {
  return Math.min(20_000, Math.ceil(memoryBytes / (16 * 1_024)));
}

function defaultReadsAtOnce(memoryBytes: number): number {
  return Math.max(2, Math.min(READS_AT_ONCE_DEFAULT_MAX, Math.floor(memoryBytes / BYTES_OF_READ)));
}

export const mebibyte = 1024 * 1024;
export const countMax = 1_000_000;
export const mebibytesMax = 4_096;

/** Reads a bound whose excess is answered with `overloaded`. */
export function boundOf(env: Environment, name: string, otherwise: number, max: number, min = 1): number {
  const value = wholeNumber(env, name, otherwise, max);
  if (value >= min) return value;
  throw new ConfigError(
    `Set ${name} to a whole number from ${min} to ${max}: with ${value} every call, or a large one, would be refused.`,
  );
}

const RATE_MAX = 1_000_000_000;

function bucket(
  env: Environment,
  rateName: string,
  rate: number,
  perS: number,
  burstName: string,
  burst: number,
): BucketSize {
  const perSecond = wholeNumber(env, rateName, rate, RATE_MAX) / perS;
  const held = wholeNumber(env, burstName, burst, RATE_MAX);
  if (perSecond > 0 && held < 1)
    throw new ConfigError(`Set ${burstName} to at least 1, or ${rateName} to 0 for no limit.`);
  return Object.freeze({ perSecond, burst: held });
}

function checkedPort(port: string): number {
  if (/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535) return Number(port);
  throw new ConfigError(
    `Set WEBHOOK_CLOSED_PORTS to ports from 1 to 65535, separated by commas; ${JSON.stringify(port)} is none.`,
  );
}

function checkedOrigin(origin: string, _at: number, all: readonly string[]): string {
  if (origin === '*' && all.length === 1) return origin;
  const parsed = URL.canParse(origin) ? new URL(origin) : null;
  if (parsed === null || parsed.origin !== origin || origin.includes('*') || !/^https?:$/.test(parsed.protocol)) {
    throw new ConfigError(
      `Set CORS_ORIGINS to origins such as https://app.example.com, or to * alone; ${JSON.stringify(origin)} is none.`,
    );
  }
  return origin;
}

function checkedProxies(proxies: string[]): string[] {
  try {
    proxyAddr.compile(proxies);
    return proxies;
  } catch {
    throw new ConfigError('Set TRUSTED_PROXIES to addresses or networks such as 10.0.0.0/8, separated by commas.');
  }
}
