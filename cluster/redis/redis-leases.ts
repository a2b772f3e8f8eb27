import type { Redis } from 'ioredis';
import type { NodeId } from '../../src/actors/routing/placement.ts';
import type { LeaseServer } from '../placement/lease-server.ts';
import type { MetBadValue } from './bad-values.ts';
import { acquireLease, leaseOwners, releaseLease, renewLeases } from './lease-scripts.ts';
import { membersKey } from './redis-members.ts';
import { runScript } from './script.ts';

/**
 * A lease server in Redis, with a hash `lease:{placement}:<shard>` for each lease. `placement`: the cluster's name. A
 * value that is no lease counts as absent and is reported to `met`. The next lease replaces it.
 */
export function redisLeases(redis: Redis, placement: string, met: MetBadValue = () => {}): LeaseServer {
  const keyOf = (shard: number) => `lease:{${placement}}:${shard}`;
  const members = membersKey(placement);
  const ownersOf = async (shards: readonly number[]): Promise<(NodeId | null)[]> => {
    const owners = await runScript(redis, leaseOwners, [members, ...shards.map(keyOf)], []);
    return owners.map((owner, at) => {
      if (owner === 0) met('lease', keyOf(shards[at] ?? 0));
      return typeof owner === 'string' && owner !== '' ? owner : null;
    });
  };
  return {
    async acquire({ shard, token }, owner, ttlMs) {
      const [held, holder] = await runScript(redis, acquireLease, [keyOf(shard), members], [owner, token, ttlMs]);
      return held === 1 ? { held: true } : { held: false, owner: String(holder) };
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
    async owner(shard) {
      const [owner = null] = await ownersOf([shard]);
      return owner;
    },
    async owners(shardCount) {
      const owners = new Map<number, NodeId>();
      const found = await ownersOf(Array.from({ length: shardCount }, (_, shard) => shard));
      for (const [shard, owner] of found.entries()) if (owner !== null) owners.set(shard, owner);
      return owners;
    },
  };
}
