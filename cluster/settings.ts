import { nodeSettings } from '../src/node/settings.ts';
import { isHost, isHostWithPort } from '../src/runtime/config/addresses.ts';
import {
  checked,
  countBound,
  host,
  matching,
  mebibyte,
  memoryBound,
  plain,
  portNumber,
  type Settings,
  wholeNumber,
} from '../src/runtime/config/setting.ts';
import { ConfigError } from '../src/runtime/start-error.ts';
import { cassandraVariables } from '../src/store/cassandra/session/settings.ts';
import { defaultPeerBounds } from './peers/peer-stream.ts';
import { nodeIdForm } from './placement/node-id.ts';
import { defaultTimings } from './placement/timings.ts';
import { countsForMaxMs } from './redis/lease-scripts.ts';

/** A shorter lease leaves no time for several renewals over the network before it ends. */
const leaseTtlMinMs = 1_000;
const timingMinMs = 50;
const stopDelayMaxSeconds = 600;

/**
 * The variables of a clustered node, in addition to those of every node. The table in docs/operations.md is made from
 * it.
 */
export const clusterSettings = {
  redisUrl: {
    name: 'REDIS_URL',
    read: redisAddress,
    whenUnset: 'none; required',
    meaning: 'Redis for leases and members, `redis://` or `rediss://`.',
  },
  clusterName: {
    name: 'CLUSTER_NAME',
    read: matching(/^[A-Za-z0-9._-]{1,64}$/, 'at most 64 letters, digits, dots, hyphens and underscores'),
    default: 'placement',
    meaning: 'Tells clusters apart that share one Redis.',
  },
  ...cassandraVariables,
  nodeId: {
    name: 'NODE_ID',
    read: matching(nodeIdForm, 'at most 128 letters, digits, dots, hyphens and underscores'),
    whenUnset: 'host name and a random part',
    meaning: 'Name of this node, unique while it lives.',
  },
  internalHost: {
    name: 'INTERNAL_HOST',
    read: host,
    default: '0.0.0.0',
    meaning: 'Address that the internal port listens on. Never a public one.',
  },
  internalPort: {
    name: 'INTERNAL_PORT',
    read: portNumber,
    default: nodeSettings.opsPort.default,
    meaning: 'Internal port: other nodes, metrics, readiness.',
  },
  advertise: {
    name: 'ADVERTISE_ADDRESS',
    read: checked((text) => isHost(text) || isHostWithPort(text), 'host or host:port, without a scheme'),
    whenUnset: 'INTERNAL_HOST, or the host name if that is every address',
    meaning: 'Where other nodes reach the internal port: `host` or `host:port`.',
  },
  peerCaFile: {
    name: 'CLUSTER_TLS_CA_FILE',
    read: plain,
    whenUnset: 'none; required in production',
    meaning: 'PEM of the CA that signs the nodes’ certificates, and nothing else.',
  },
  peerCertFile: {
    name: 'CLUSTER_TLS_CERT_FILE',
    read: plain,
    whenUnset: 'none; required in production',
    meaning: 'Certificate of this node, PEM.',
  },
  peerKeyFile: {
    name: 'CLUSTER_TLS_KEY_FILE',
    read: plain,
    whenUnset: 'none; required in production',
    meaning: 'Private key of that certificate, PEM.',
  },
  secret: {
    name: 'CLUSTER_SECRET',
    read: plain,
    whenUnset: 'none',
    meaning:
      'At least 16 characters that all nodes share. Enough in development mode; beside certificates in production.',
  },
  secretFile: {
    name: 'CLUSTER_SECRET_FILE',
    read: plain,
    whenUnset: 'none',
    meaning: 'File that holds it, in place of CLUSTER_SECRET.',
  },
  peerCommandsMax: {
    name: 'PEER_COMMANDS_MAX',
    read: countBound(64),
    default: String(defaultPeerBounds.commandsMax),
    meaning: 'Commands that may wait for one other node. Beyond it calls are `overloaded`.',
  },
  peerUnsentBytes: {
    name: 'PEER_UNSENT_MIB',
    read: memoryBound(4),
    default: String(defaultPeerBounds.unsentBytesMax / mebibyte),
    meaning:
      'What commands that could not be sent to one other node yet may hold in memory. Beyond it calls are `overloaded`.',
  },
  startWaitMs: {
    name: 'START_WAIT_MS',
    read: milliseconds(0),
    default: '0',
    meaning: 'How long a starting node waits for Cassandra and its schema before it gives up.',
  },
  stopDelaySeconds: {
    name: 'STOP_DELAY_SECONDS',
    read: wholeNumber(0, stopDelayMaxSeconds, 'seconds, a whole number'),
    default: '0',
    meaning:
      'How long a stopping node takes calls while it says that it is not ready: as long as your balancer needs to notice. At most 600.',
  },
  leaseTtlMs: {
    name: 'LEASE_TTL_MS',
    read: milliseconds(leaseTtlMinMs, countsForMaxMs),
    default: String(defaultTimings.leaseTtlMs),
    meaning: 'How long a lease of a shard lasts: 1000 to 600000.',
  },
  leaseRenewMs: {
    name: 'LEASE_RENEW_MS',
    read: milliseconds(timingMinMs),
    whenUnset: String(defaultTimings.renewEveryMs),
    meaning:
      'How often leases are renewed, 50 or more; with LEASE_MARGIN_MS less than LEASE_TTL_MS. By default a third of a short LEASE_TTL_MS.',
  },
  leaseMarginMs: {
    name: 'LEASE_MARGIN_MS',
    read: milliseconds(timingMinMs),
    whenUnset: String(defaultTimings.marginMs),
    meaning:
      'How long before its end a node stops relying on a lease, 50 or more and less than LEASE_RENEW_MS; by default a sixth of a short LEASE_TTL_MS.',
  },
  rebalanceQuietMs: {
    name: 'REBALANCE_QUIET_MS',
    read: milliseconds(),
    default: String(defaultTimings.quietMs),
    meaning: 'How long after a change of nodes shards stay where they are.',
  },
} satisfies Settings;

function milliseconds(min = 1, max = 9_999_999) {
  return wholeNumber(min, max, 'milliseconds, a whole number');
}

function redisAddress(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const isRedis = parsed !== null && /^rediss?:$/.test(parsed.protocol) && url.startsWith(`${parsed.protocol}//`);
  // The message does not show the URL: it may hold a password.
  if (!isRedis || parsed.hostname === '' || parsed.port === '0' || !/^\/?\d{0,4}$/.test(parsed.pathname))
    throw new ConfigError(
      'Set REDIS_URL to the address of Redis, such as redis://redis:6379 or rediss://redis:6380/1.',
    );
  return url;
}
