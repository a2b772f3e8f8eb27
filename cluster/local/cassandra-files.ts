import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface CassandraNodePlan {
  readonly address: string;
  /** The CQL port, the same on every node. */
  readonly port: number;
  readonly storagePort: number;
  readonly seeds: readonly string[];
  readonly token: string;
  readonly dir: string;
  /** Cassandra's timeouts of a write and of contention at a conditional write, ms. Default: 2 s and 1.8 s. */
  readonly writeMaxMs?: number;
}

/** Returns tokens that divide the ring of Murmur3Partitioner into `count` equal parts. */
export function evenTokens(count: number): string[] {
  const step = 2n ** 64n / BigInt(count);
  return Array.from({ length: count }, (_, index) => String(-(2n ** 63n) + step * BigInt(index)));
}

/** Writes cassandra.yaml and logback.xml, which the jars do not contain. Returns their paths. */
export async function writeCassandraFiles(plan: CassandraNodePlan): Promise<{ yaml: string; logback: string }> {
  await mkdir(plan.dir, { recursive: true });
  const yaml = join(plan.dir, 'cassandra.yaml');
  const logback = join(plan.dir, 'logback.xml');
  await writeFile(yaml, yamlOf(plan));
  await writeFile(logback, logbackOf(plan.dir));
  return { yaml, logback };
}

/**
 * The settings that matter are those of docs/operations.md: commits are on disk before they are acknowledged, with
 * direct access because a memory-mapped log is slow to sync; Paxos is v2, and repair purges its state;
 * `column_index_size` is small, so that finding a row in a large partition does not read 64 KiB of other rows.
 */
function yamlOf({ address, port, storagePort, seeds, token, dir, writeMaxMs }: CassandraNodePlan): string {
  return `cluster_name: ledger-trust-local
num_tokens: 1
initial_token: ${token}
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "${seeds.map((seed) => `${seed}:${storagePort}`).join(',')}"
listen_address: ${address}
rpc_address: ${address}
storage_port: ${storagePort}
native_transport_port: ${port}
data_file_directories:
  - ${join(dir, 'data')}
commitlog_directory: ${join(dir, 'commitlog')}
saved_caches_directory: ${join(dir, 'saved_caches')}
hints_directory: ${join(dir, 'hints')}
cdc_raw_directory: ${join(dir, 'cdc_raw')}
commitlog_sync: batch
commitlog_disk_access_mode: direct
disk_failure_policy: stop
commit_failure_policy: stop
auto_snapshot: false
paxos_variant: v2
paxos_state_purging: repaired
column_index_size: 4KiB
${writeMaxMs === undefined ? '' : writeLimits(writeMaxMs)}`;
}

function writeLimits(ms: number): string {
  return `write_request_timeout: ${ms}ms
cas_contention_timeout: ${ms}ms
`;
}

function logbackOf(dir: string): string {
  return `<configuration scan="false">
  <appender name="FILE" class="ch.qos.logback.core.FileAppender">
    <file>${join(dir, 'system.log')}</file>
    <encoder><pattern>%-5level %date{ISO8601} %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="FILE"/></root>
</configuration>
`;
}
