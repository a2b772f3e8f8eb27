import type { Redis } from 'ioredis';
import type { Announcement, Member, MemberBoard } from '../placement/members.ts';
import { announceMember, listMembers, withdrawMember } from './lease-scripts.ts';
import { runScript } from './script.ts';

/** The hash of a cluster's members. */
export function membersKey(placement: string): string {
  return `members:{${placement}}`;
}

/** Members in Redis: hashes `members:{placement}` (with the time until which each counts, by the clock of Redis) and `orders:{placement}`. */
export function redisMembers(redis: Redis, placement: string): MemberBoard {
  const members = membersKey(placement);
  const orders = `orders:{${placement}}`;
  return {
    async announce(announcement, ttlMs) {
      const { id, startedAt, address } = announcement;
      await runScript(redis, announceMember, [members], [id, startedAt, address, ttlMs, JSON.stringify(announcement)]);
    },
    async withdraw({ id, startedAt, address }) {
      await runScript(redis, withdrawMember, [members], [id, startedAt, address]);
    },
    async list() {
      const listed = (await runScript(redis, listMembers, [members, orders], [])).map(String);
      const found: Member[] = [];
      for (let at = 0; at + 2 < listed.length; at += 3) {
        const announcement = announcementOf(listed[at + 1] ?? '');
        const order = listed[at + 2];
        if (announcement !== null)
          found.push({ ...announcement, order: order === 'cordoned' || order === 'draining' ? order : null });
      }
      return found.sort((a, b) => (a.id < b.id ? -1 : 1));
    },
    async order(id, order) {
      if (order === null) return (await redis.hdel(orders, id)) === 1;
      return (await redis.hset(orders, id, order)) === 0;
    },
  };
}

/** null for what no version of a node announces. */
function announcementOf(text: string): Announcement | null {
  try {
    const { id, address, ports, startedAt, draining, shardCount, clockAheadMs } = JSON.parse(
      text,
    ) as Partial<Announcement>;
    if (typeof id !== 'string' || typeof address !== 'string' || typeof startedAt !== 'string') return null;
    return {
      id,
      address,
      ...(Array.isArray(ports) ? { ports: ports.map(Number) } : {}),
      startedAt,
      draining: draining === true,
      shardCount: Number(shardCount),
      ...(typeof clockAheadMs === 'number' ? { clockAheadMs } : {}),
    };
  } catch {
    return null;
  }
}
