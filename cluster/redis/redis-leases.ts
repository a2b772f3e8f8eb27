import type { Redis } from 'ioredis';
import type { NodeId } from '../../src/actors/placement.ts';
import type { LeaseServer } from '../placement/lease-server.ts';
import { acquireLease, leaseOwners, releaseLease, renewLeases } from './lease-scripts.ts';
import { runScript } from './script.ts';

/** Leases in Redis: a hash `lease:{placement}:<shard>` each. `placement` names the cluster. */
export function redisLeases(redis: Redis, placement: string): LeaseServer {
  const keyOf = (shard: number) => `lease:{${placement}}:${shard}`;
  return {
    async acquire({ shard, token }, owner, ttlMs) {
      const [held, standing] = await runScript(redis, acquireLease, [keyOf(shard)], [owner, token, ttlMs]);
      return held === 1 ? { held: true } : { held: false, owner: String(standing) };
    },
    async renew(leases, ttlMs) {
      const keys = leases.map(({ shard }) => keyOf(shard));
      const tokens = leases.map(({ token }) => token);
      const renewed = await runScript(redis, renewLeases, keys, [ttlMs, ...tokens]);
      return new Set(leases.filter((_, at) => renewed[at] === 1).map(({ shard }) => shard));
    },
    async release({ shard, token }, heir, heirMs) {
      await runScript(redis, releaseLease, [keyOf(shard)], [token, heir ?? '', heirMs]);
    },
    owner: (shard) => redis.hget(keyOf(shard), 'owner'),
    async owners(shardCount) {
      const keys = Array.from({ length: shardCount }, (_, shard) => keyOf(shard));
      const owners = new Map<number, NodeId>();
      for (const [shard, owner] of (await runScript(redis, leaseOwners, keys, [])).entries())
        if (typeof owner === 'string' && owner !== '') owners.set(shard, owner);
      return owners;
    },
  };
}
