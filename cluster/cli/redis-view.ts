import type { Environment } from '../../src/runtime/config/setting.ts';
import { ConfigError } from '../../src/runtime/start-error.ts';
import { readRedisConfig } from '../config.ts';
import { connectRedis, createRedis } from '../redis/client.ts';
import { redisLeases } from '../redis/redis-leases.ts';
import { redisMembers } from '../redis/redis-members.ts';
import type { ClusterView } from './cluster-commands.ts';

/** Connects to the Redis of the cluster that the environment names. Throws ConfigError if it cannot be reached. */
export async function openRedisView(env: Environment): Promise<ClusterView & AsyncDisposable> {
  const { redisUrl, placement } = readRedisConfig(env);
  const redis = createRedis(redisUrl, () => {});
  if (!(await connectRedis(redis))) {
    redis.disconnect();
    throw new ConfigError('Set REDIS_URL to the Redis of the cluster: nothing answers there.');
  }
  return {
    board: redisMembers(redis, placement),
    leases: redisLeases(redis, placement),
    [Symbol.asyncDispose]: async () => redis.disconnect(),
  };
}
