import type cassandra from 'cassandra-driver';
import { StartError } from '../../../runtime/start-error.ts';
import { look } from './connect.ts';
import type { ReadSchemaNodes, Wait } from './schema-agreement.ts';
import type { CassandraSettings, Override } from './settings.ts';

/** A node that takes calls is known to all other nodes within seconds. */
export const joinedMaxMs = 30_000;
const joinedPollMs = 500;

interface Setting {
  readonly name: string;
  readonly isFine: (value: string) => boolean;
  readonly override: Override;
  readonly advice: string;
}

const settings: readonly Setting[] = [
  {
    name: 'paxos_variant',
    isFine: (value) => value !== 'v1' && value !== 'v1_without_linearizable_reads_or_rejected_writes',
    override: 'paxos-v1',
    advice: 'set paxos_variant: v2 (and paxos_state_purging: repaired)',
  },
  {
    name: 'commitlog_sync',
    isFine: (value) => value !== 'periodic',
    override: 'periodic-commit-log',
    advice: 'set commitlog_sync: batch, or writes are acknowledged before they are on disk',
  },
];

/**
 * Throws StartError if a reachable node of Cassandra has a version or a setting with which answered writes could be
 * lost or ledgers could fork, unless CASSANDRA_ALLOW allows it. Versions before 4.0 cannot be allowed. Does not check
 * nodes that cannot be reached now.
 */
export async function checkServers(client: cassandra.Client, { allow }: CassandraSettings): Promise<void> {
  for (const host of client.hosts.values()) {
    if (!host.isUp()) continue;
    checkVersion(host.address, await versionOf(client, host), allow);
    const rows = await look(client, 'SELECT name, value FROM system_views.settings', [], { host, fetchSize: 5_000 });
    const values = new Map(rows.map((row) => [String(row.name), String(row.value)]));
    for (const { name, isFine, override, advice } of settings) {
      const value = values.get(name)?.toLowerCase() ?? 'unknown';
      if (isFine(value) || allow.has(override)) continue;
      throw new StartError(
        `Cassandra at ${host.address} has ${name}: ${value}: ${advice}; or allow it by CASSANDRA_ALLOW=${override}.`,
      );
    }
  }
}

async function versionOf(client: cassandra.Client, host: cassandra.Host): Promise<string> {
  const [row] = await look(client, 'SELECT release_version FROM system.local', [], { host });
  return String(row?.release_version);
}

/** Paxos v2 and its setting came with 4.1, the table of settings with 4.0. */
function checkVersion(address: string, version: string, allow: ReadonlySet<Override>): void {
  const old = `Cassandra at ${address} is of version ${version}, which has Paxos v1 alone`;
  if (isBefore(version, 4, 0)) throw new StartError(`${old} and does not tell its settings: take 4.1 or a later one.`);
  if (isBefore(version, 4, 1) && !allow.has('paxos-v1'))
    throw new StartError(`${old}: take 4.1 or a later one; or allow it by CASSANDRA_ALLOW=paxos-v1.`);
}

function isBefore(version: string, major: number, minor: number): boolean {
  const [, itsMajor, itsMinor] = /^(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(itsMajor) < major || (Number(itsMajor) === major && Number(itsMinor) < minor);
}

/** Throws StartError if two data centres could each decide, or the keyspace is not in the local one. */
export function checkDataCenters(
  dataCenters: readonly string[],
  { keyspace, reach, localDataCenter }: CassandraSettings,
): void {
  if (dataCenters.length > 1 && reach === 'local')
    throw new StartError(
      `Keyspace ${keyspace} is in the data centres ${dataCenters.join(', ')}: with LOCAL_SERIAL each of them would decide for itself; set CASSANDRA_CONSISTENCY=global.`,
    );
  if (dataCenters.length > 0 && !dataCenters.includes(localDataCenter))
    throw new StartError(
      `Keyspace ${keyspace} is not in data centre ${localDataCenter} but in ${dataCenters.join(', ')}: set CASSANDRA_DATA_CENTER.`,
    );
}

/**
 * Throws StartError if a data centre does not exist, or has fewer nodes of Cassandra than replicas: Cassandra would
 * make the keyspace, but nothing could be written to it. Nodes that are down count. If there are too few nodes, counts
 * again until the wait is over, because a node that has just started takes calls before the other nodes know it.
 */
export async function checkReplicas(
  read: ReadSchemaNodes,
  replication: ReadonlyMap<string, number>,
  wait: Wait,
): Promise<void> {
  for (;;) {
    const nodes = Map.groupBy(await read(), ({ dataCenter }) => dataCenter);
    const counts = [...replication].map(([name, replicas]) => {
      return { name, replicas, count: nodes.get(name)?.length ?? 0 };
    });
    const absent = counts.find(({ count }) => count === 0);
    if (absent !== undefined)
      throw new StartError(
        `Cassandra has no data centre ${absent.name}: name those that it has (${[...nodes.keys()].join(', ')}) in --replication.`,
      );
    const small = counts.find(({ count, replicas }) => count < replicas);
    if (small === undefined) return;
    if (wait.isOver()) {
      const { name, replicas, count } = small;
      throw new StartError(
        `Data centre ${name} has ${count} of the ${replicas} nodes of Cassandra that ${replicas} replicas need: add nodes first, or ask for fewer replicas by --replication ${name}:${count}.`,
      );
    }
    await wait.pause(joinedPollMs);
  }
}

/** The replicas by data centre. null if there is no such keyspace. StartError if its strategy names none. */
export async function replicasOf(client: cassandra.Client, keyspace: string): Promise<Map<string, number> | null> {
  const asked = 'SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?';
  const [row] = await look(client, asked, [keyspace]);
  const replication: unknown = row?.replication;
  if (replication === undefined) return null;
  const entries = Object.entries(replication as Record<string, string>);
  const strategy = entries.find(([key]) => key === 'class')?.[1] ?? '';
  if (!strategy.endsWith('NetworkTopologyStrategy'))
    throw new StartError(
      `Keyspace ${keyspace} is replicated by ${strategy}: give it NetworkTopologyStrategy with its data centre.`,
    );
  return new Map(entries.filter(([key]) => key !== 'class').map(([key, value]) => [key, Number(value)]));
}
