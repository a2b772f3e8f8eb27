import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { cassandraClasspath } from '../../cluster/local/cassandra-jars.ts';
import type { Backend } from '../support/backends/backend.ts';

const run = promisify(execFile);

/** Whether this machine can start Redis and Cassandra for a cluster, which may be paused and killed. */
export async function ownBackends(): Promise<Backend<null>> {
  const began = performance.now();
  try {
    await Promise.all([run('redis-server', ['--version']), run('java', ['-version']), cassandraClasspath()]);
    return { kind: 'there', address: null, startupMs: performance.now() - began, from: 'local processes' };
  } catch (error) {
    const [line = ''] = String(error instanceof Error ? error.message : error).split('\n');
    return { kind: 'missing', reason: line };
  }
}
