import proxyAddr from 'proxy-addr';
import { mailboxBytesMax, mailboxCommandsMax } from '../actors/bounds.ts';
import { isServiceName } from '../domain/log/origin.ts';
import {
  checked,
  countBound,
  flag,
  host,
  listOf,
  mebibyte,
  memoryBound,
  oneOf,
  plain,
  portNumber,
  type Settings,
  wholeNumber,
} from '../runtime/config/setting.ts';
import { ConfigError } from '../runtime/start-error.ts';
import { changesWaitingByDefault } from '../service/records/change-mutex.ts';
import { defaultWaitingMax } from '../service/signatures/verifying-threads.ts';

const serviceName = checked(
  isServiceName,
  'the base URL of the API without its scheme, in lower case, such as ledger.example/v1',
);
const rateMax = 1_000_000_000;

/** The variables of every node. The table in docs/operations.md is made from them. */
export const nodeSettings = {
  mode: {
    name: 'SVC_MODE',
    read: oneOf('development', 'production'),
    default: 'development',
    meaning:
      '`development` or `production`. Production mode refuses to start on an incomplete or unsafe configuration.',
  },
  host: { name: 'HOST', read: host, default: '0.0.0.0', meaning: 'Address that the two public ports listen on.' },
  port: {
    name: 'PORT',
    read: portNumber,
    default: '8080',
    meaning: 'HTTP port: REST, Connect, gRPC-Web, documentation, health.',
  },
  grpcPort: { name: 'GRPC_PORT', read: portNumber, default: '50051', meaning: 'gRPC port.' },
  opsHost: {
    name: 'OPS_HOST',
    read: host,
    default: '127.0.0.1',
    meaning: 'Address that the internal port listens on; in production mode a loopback one.',
  },
  opsPort: {
    name: 'OPS_PORT',
    read: portNumber,
    default: '9100',
    meaning: 'Internal port: metrics, liveness, readiness.',
  },
  dataDir: {
    name: 'DATA_DIR',
    read: plain,
    default: './data',
    meaning: 'Directory of the embedded store and of keys made on first start.',
  },
  authorityKeyFile: {
    name: 'AUTHORITY_KEY_FILE',
    read: plain,
    whenUnset: 'made on first start; required in production',
    meaning: 'Ed25519 private key of the authority, PKCS#8 PEM.',
  },
  secretsKeyFile: {
    name: 'SECRETS_KEY_FILE',
    read: plain,
    whenUnset: 'made on first start; required in production',
    meaning:
      'Key that encrypts webhook secrets and stored answers, and authenticates snapshots: 32 bytes in base64. It cannot be changed.',
  },
  logOrigin: {
    name: 'LOG_ORIGIN',
    read: serviceName,
    whenUnset: '`localhost/dev-` and 8 random hex digits; required in production',
    meaning:
      'Name of the service in its checkpoints: the base URL of the API without its scheme, such as `ledger.example/v1`. Change it by `log new-origin` alone.',
  },
  logKeyFile: {
    name: 'LOG_KEY_FILE',
    read: plain,
    whenUnset: 'made on first start (in a cluster: from SECRETS_KEY_FILE); required in production',
    meaning: 'Ed25519 private key that signs checkpoints, PKCS#8 PEM; not that of the authority.',
  },
  tlsCertFile: {
    name: 'TLS_CERT_FILE',
    read: plain,
    whenUnset: 'none',
    meaning: 'Certificate chain, PEM. With TLS_KEY_FILE, both public ports speak TLS.',
  },
  tlsKeyFile: { name: 'TLS_KEY_FILE', read: plain, whenUnset: 'none', meaning: 'Private key of the certificate, PEM.' },
  tlsTerminated: {
    name: 'TLS_TERMINATED',
    read: flag,
    default: '0',
    meaning: '`1`: something in front of the service speaks TLS. Production mode asks for this or the two files above.',
  },
  corsOrigins: {
    name: 'CORS_ORIGINS',
    read: origins,
    whenUnset: 'none',
    meaning: 'Origins whose pages may call the HTTP port, separated by commas, or `*`, which production mode refuses.',
  },
  trustedProxies: {
    name: 'TRUSTED_PROXIES',
    read: proxies,
    whenUnset: 'none',
    meaning: 'Addresses or networks (such as `10.0.0.0/8`), separated by commas, whose X-Forwarded-For is believed.',
  },
  logLevel: {
    name: 'LOG_LEVEL',
    read: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'silent'),
    default: 'info',
    meaning: '`fatal`, `error`, `warn`, `info` (a line a request), `debug` or `silent`.',
  },
  webhookClosedPorts: {
    name: 'WEBHOOK_CLOSED_PORTS',
    read: closedPorts,
    whenUnset: 'none',
    meaning:
      'Ports on loopback, separated by commas, that no webhook goes to in development mode; those of this service, its nodes, its Redis and Cassandra are closed without being named.',
  },
  createPerMinute: {
    name: 'RATE_LIMIT_CREATE_PER_MINUTE',
    ...rate(600),
    meaning: 'Calls a minute and address that create something without a credential. 0: no limit.',
  },
  createBurst: {
    name: 'RATE_LIMIT_CREATE_BURST',
    read: wholeNumber(0, rateMax),
    default: '300',
    meaning: 'How many of them may come at once.',
  },
  callPerSecond: {
    name: 'RATE_LIMIT_CALL_PER_SECOND',
    ...rate(200),
    meaning:
      'Calls a second for each API key, appends not counted. Costs beyond one call share one rate for all keys of an actor. Calls without a credential, and callers whose identity is not verified, share ten times this rate for each address. 0: no limit.',
  },
  callBurst: {
    name: 'RATE_LIMIT_CALL_BURST',
    read: wholeNumber(0, rateMax),
    default: '500',
    meaning: 'How many of them may come at once.',
  },
  appendPerSecond: {
    name: 'RATE_LIMIT_APPEND_PER_SECOND',
    ...rate(5000),
    meaning:
      'Appends a second for each API key; opening a stream is one. Costs of appends and of events of streams beyond one call share one rate for all keys of an actor. Callers whose identity is not verified share ten times this rate for each address. 0: no limit.',
  },
  appendBurst: {
    name: 'RATE_LIMIT_APPEND_BURST',
    read: wholeNumber(0, rateMax),
    default: '5000',
    meaning: 'How many of them may come at once.',
  },
  memoryBudgetBytes: {
    name: 'MEMORY_BUDGET_MIB',
    read: memoryBudget,
    whenUnset: 'a quarter of the memory or of the heap limit, whichever is smaller; at most 256',
    meaning:
      'What requests, answers, reads, streams and queues may hold in memory together. Beyond it calls are `overloaded`.',
  },
  connectionsMax: {
    name: 'CONNECTIONS_MAX',
    read: countBound(),
    whenUnset: 'one for each 16 KiB of the memory budget; at most 20000',
    meaning:
      'Connections of each public port. Beyond it a new one takes the place of an idle one of the address with most, or is closed.',
  },
  connectionRequestBytes: {
    name: 'GRPC_CONNECTION_REQUEST_MIB',
    read: connectionBytes(2),
    default: '8',
    meaning: 'Memory for unfinished messages of one gRPC connection. Beyond it calls are `overloaded`.',
  },
  connectionAnswerBytes: {
    name: 'GRPC_CONNECTION_ANSWER_MIB',
    read: connectionBytes(8),
    default: '32',
    meaning:
      'Memory for answers that the client of one gRPC connection has not read yet. Beyond it reads are `overloaded`, and other calls end with the connection.',
  },
  readsAtOnce: {
    name: 'READS_AT_ONCE',
    read: countBound(),
    whenUnset: 'one for each 16 MiB of the memory budget; at least 2, at most 16',
    meaning:
      'Long reads (lists, event pages, proofs) that run at once. The next ones wait, and callers get places round-robin.',
  },
  readsAtOncePerCaller: {
    name: 'READS_AT_ONCE_PER_CALLER',
    read: countBound(),
    default: '4',
    meaning: 'How many of them one actor, or one address without a key, has.',
  },
  readsWaiting: {
    name: 'READS_WAITING',
    read: countBound(),
    default: '1000',
    meaning: 'Long reads that wait. Beyond it those of the caller with most of them are `overloaded`.',
  },
  followersMax: {
    name: 'FOLLOWERS_MAX',
    read: countBound(),
    whenUnset: 'five for each eight of `CONNECTIONS_MAX`; at most 10000',
    meaning:
      'Streams that follow on this node. Beyond it those of the actor or address with most are `overloaded`. Over gRPC MEMORY_BUDGET_MIB bounds them first: about 2,000 with 256 MiB.',
  },
  followersPerActorMax: {
    name: 'FOLLOWERS_PER_ACTOR_MAX',
    read: countBound(),
    default: '100',
    meaning: 'How many of them one actor has.',
  },
  subscriptionsMax: {
    name: 'SUBSCRIPTIONS_MAX',
    read: countBound(),
    whenUnset: 'one for each 16 KiB of the memory budget; at most 1000000',
    meaning:
      'Active webhook subscriptions of all actors, which every node holds in memory. Beyond it new ones are `overloaded`.',
  },
  sandboxRunsWaiting: {
    name: 'SANDBOX_RUNS_WAITING',
    read: countBound(),
    default: '64',
    meaning: 'Runs of the sandbox that wait. Beyond it those of the address with most of them are `overloaded`.',
  },
  changesWaiting: {
    name: 'CHANGES_WAITING',
    read: countBound(),
    default: String(changesWaitingByDefault),
    meaning:
      'Changes that wait for one record, and new webhook subscriptions or API keys that wait for one actor. Beyond it calls are `overloaded`. Revocations of signing keys come first and are not refused.',
  },
  ledgerQueueMax: {
    name: 'LEDGER_QUEUE_MAX',
    read: countBound(),
    default: String(mailboxCommandsMax),
    meaning: 'Commands that may wait for one ledger. Beyond it calls are `overloaded`.',
  },
  ledgerQueueBytes: {
    name: 'LEDGER_QUEUE_MIB',
    read: memoryBound(),
    default: String(mailboxBytesMax / mebibyte),
    meaning: 'What the commands that wait for one ledger may hold in memory. Beyond it calls are `overloaded`.',
  },
  signatureQueueMax: {
    name: 'SIGNATURE_QUEUE_MAX',
    read: countBound(),
    default: String(defaultWaitingMax),
    meaning: 'Signatures that may wait to be verified. Beyond it calls are `overloaded`.',
  },
} satisfies Settings;

/** A rate without a limit in development mode. */
function rate(production: number) {
  return {
    read: wholeNumber(0, rateMax),
    whenUnset: `0 in development mode, ${production} in production mode`,
    production,
  };
}

function atLeast(name: string, value: number, min: number, why: string): number {
  if (value < min) throw new ConfigError(`Set ${name} to at least ${min}: ${why}.`);
  return value;
}

/** null for 0. */
function memoryBudget(text: string, name: string): number | null {
  const value = wholeNumber(0, 65_536)(text, name);
  return value === 0 ? null : atLeast(name, value, 32, 'two large calls need as much') * mebibyte;
}

/** A bound below `min` would refuse the largest message, or the largest answer, of any client. */
function connectionBytes(min: number) {
  return (text: string, name: string): number =>
    atLeast(name, wholeNumber(0, 1_024)(text, name), min, 'the largest call needs as much') * mebibyte;
}

function closedPorts(text: string): readonly number[] {
  return listOf(text).map((port) => {
    if (/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535) return Number(port);
    throw new ConfigError(
      `Set WEBHOOK_CLOSED_PORTS to ports from 1 to 65535, separated by commas; ${JSON.stringify(port)} is none.`,
    );
  });
}

function origins(text: string): readonly string[] {
  return listOf(text).map((origin, _, all) => {
    if (origin === '*' && all.length === 1) return origin;
    const parsed = URL.canParse(origin) ? new URL(origin) : null;
    if (parsed === null || parsed.origin !== origin || origin.includes('*') || !/^https?:$/.test(parsed.protocol)) {
      throw new ConfigError(
        `Set CORS_ORIGINS to origins such as https://app.example.com, or to * alone; ${JSON.stringify(origin)} is none.`,
      );
    }
    return origin;
  });
}

function proxies(text: string): readonly string[] {
  const all = listOf(text);
  try {
    proxyAddr.compile(all);
    return all;
  } catch {
    throw new ConfigError('Set TRUSTED_PROXIES to addresses or networks such as 10.0.0.0/8, separated by commas.');
  }
}
