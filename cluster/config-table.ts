import type { ConfigVariable } from '../src/runtime/config/config-table.ts';
import { defaultPeerBounds } from './peers/peer-stream.ts';
import { defaultTimings } from './placement/timings.ts';

export const defaultPlacement = 'placement';

/**
 * The variables of a clustered node, in addition to those of every node. The table in docs/operations.md is made from
 * it.
 */
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
    meaning: 'PEM of the CA that signed Cassandra’s certificates.',
  },
  {
    name: 'CASSANDRA_ALLOW',
    default: 'none',
    meaning: '`paxos-v1`, `periodic-commit-log`: unsafe settings of Cassandra that are allowed by name.',
  },
  {
    name: 'CASSANDRA_REQUESTS_MAX',
    default: '4096',
    meaning: 'Requests to Cassandra that may be under way at once. Beyond it calls are `overloaded`.',
  },
  {
    name: 'CASSANDRA_WRITES_MAX',
    default: '4096',
    meaning: 'Writes that may wait for one ledger or record. Beyond it calls are `overloaded`.',
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
    default: 'INTERNAL_HOST, or the host name if that is every address',
    meaning: 'Where other nodes reach the internal port: `host` or `host:port`.',
  },
  {
    name: 'CLUSTER_TLS_CA_FILE',
    default: 'none; required in production',
    meaning: 'PEM of the CA that signs the nodes’ certificates, and nothing else.',
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
  { name: 'CLUSTER_SECRET_FILE', default: 'none', meaning: 'File that holds it, in place of CLUSTER_SECRET.' },
  {
    name: 'PEER_COMMANDS_MAX',
    default: String(defaultPeerBounds.commandsMax),
    meaning: 'Commands that may wait for one other node. Beyond it calls are `overloaded`.',
  },
  {
    name: 'PEER_UNSENT_MIB',
    default: String(defaultPeerBounds.unsentBytesMax / (1024 * 1024)),
    meaning:
      'What commands that could not be sent to one other node yet may hold in memory. Beyond it calls are `overloaded`.',
  },
  {
    name: 'START_WAIT_MS',
    default: '0',
    meaning: 'How long a starting node waits for Cassandra and its schema before it gives up.',
  },
  {
    name: 'STOP_DELAY_SECONDS',
    default: '0',
    meaning:
      'How long a stopping node takes calls while it says that it is not ready: as long as your balancer needs to notice. At most 600.',
  },
  {
    name: 'LEASE_TTL_MS',
    default: String(defaultTimings.leaseTtlMs),
    meaning: 'How long a lease of a shard lasts: 1000 to 600000.',
  },
  {
    name: 'LEASE_RENEW_MS',
    default: String(defaultTimings.renewEveryMs),
    meaning:
      'How often leases are renewed, 50 or more; with LEASE_MARGIN_MS less than LEASE_TTL_MS. By default a third of a short LEASE_TTL_MS.',
  },
  {
    name: 'LEASE_MARGIN_MS',
    default: String(defaultTimings.marginMs),
    meaning:
      'How long before its end a node stops relying on a lease, 50 or more and less than LEASE_RENEW_MS; by default a sixth of a short LEASE_TTL_MS.',
  },
  {
    name: 'REBALANCE_QUIET_MS',
    default: String(defaultTimings.quietMs),
    meaning: 'How long after a change of nodes shards stay where they are.',
  },
]);
