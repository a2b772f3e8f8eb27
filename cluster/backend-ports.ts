import { portOf } from '../src/store/cassandra/session/settings.ts';
import type { ClusterConfig } from './config.ts';

const redisDefaultPort = 6379;

/**
 * Returns the ports of Redis and Cassandra in the configuration. No webhook may go to them, so that a subscription
 * cannot reach the service's own backends.
 */
export function backendPorts(config: Pick<ClusterConfig, 'redisUrl' | 'cassandra'>): ReadonlySet<number> {
  const { port } = new URL(config.redisUrl);
  return new Set([port === '' ? redisDefaultPort : Number(port), ...config.cassandra.contactPoints.map(portOf)]);
}
