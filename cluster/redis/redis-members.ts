import type { Redis } from 'ioredis';
import { readAnnouncement } from '../placement/announcement.ts';
import type { Member, MemberBoard } from '../placement/members.ts';
import { announceMember, listMembers, withdrawMember } from './lease-scripts.ts';
import { runScript } from './script.ts';

/** The hash of a cluster's members. */
export function membersKey(placement: string): string {
  return `members:{${placement}}`;
}

/**
 * Members in Redis: hashes `members:{placement}` (with the time until which each counts, by the clock of Redis) and `orders:{placement}`.
 * Announcements that cannot be read are passed over; `unreadable` is told their ids each time that members are listed.
 */
export function redisMembers(
  redis: Redis,
  placement: string,
  unreadable: (ids: readonly string[]) => void = () => {},
): MemberBoard {
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
      const passedOver: string[] = [];
      for (let at = 0; at + 2 < listed.length; at += 3) {
        const id = listed[at] ?? '';
        const announcement = readAnnouncement(id, listed[at + 1] ?? '');
        const order = listed[at + 2];
        if (announcement === null) passedOver.push(id);
        else found.push({ ...announcement, order: order === 'cordoned' || order === 'draining' ? order : null });
      }
      unreadable(passedOver);
      return found.sort((a, b) => (a.id < b.id ? -1 : 1));
    },
    async order(id, order) {
      if (order === null) return (await redis.hdel(orders, id)) === 1;
      return (await redis.hset(orders, id, order)) === 0;
    },
  };
}
