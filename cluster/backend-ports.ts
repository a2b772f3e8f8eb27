import { portOf } from '../src/store/cassandra/settings.ts';
import type { ClusterConfig } from './config.ts';

const redisDefaultPort = 6379;

/** Where Redis and Cassandra listen for this node, wherever they were moved to: no port for webhooks (security.md, Webhooks). */
export function backendPorts(config: Pick<ClusterConfig, 'redisUrl' | 'cassandra'>): ReadonlySet<number> {
  const { port } = new URL(config.redisUrl);
  return new Set([port === '' ? redisDefaultPort : Number(port), ...config.cassandra.contactPoints.map(portOf)]);
}
