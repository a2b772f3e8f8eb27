import type { Redis } from 'ioredis';
import { readAnnouncement } from '../placement/announcement.ts';
import { type Member, type MemberBoard, membersMax, type Order } from '../placement/members.ts';
import type { MetBadValue } from './bad-values.ts';
import { announceMember, listMembers, withdrawMember } from './lease-scripts.ts';
import { runScript } from './script.ts';

/** The key of the hash of a cluster's members. */
export function membersKey(placement: string): string {
  return `members:{${placement}}`;
}

/**
 * A member board in Redis, with two hashes. `members:{placement}` holds each announcement and until when it is valid,
 * by the clock of Redis; `orders:{placement}` the orders. Bad values are ignored and reported to `met`.
 */
export function redisMembers(redis: Redis, placement: string, met: MetBadValue = () => {}): MemberBoard {
  const members = membersKey(placement);
  const orders = `orders:{${placement}}`;
  const orderOf = (id: string, order: string): Order | null => {
    if (order === 'cordoned' || order === 'draining') return order;
    if (order !== '') met('order', `${orders} ${id}`);
    return null;
  };
  return {
    async announce(announcement, ttlMs, heldUntil = 0) {
      const { id, startedAt, address } = announcement;
      const args = [id, startedAt, address, ttlMs, JSON.stringify(announcement), heldUntil];
      const [until, hasReplaced] = await runScript(redis, announceMember, [members], args);
      if (hasReplaced === 1) met('member', `${members} ${id}`);
      return typeof until === 'number' && until > 0 ? until : null;
    },
    async withdraw({ id, startedAt, address }) {
      await runScript(redis, withdrawMember, [members], [id, startedAt, address]);
    },
    async list() {
      const listed = (await runScript(redis, listMembers, [members, orders], [])).map(String);
      if (listed.length === 1) {
        met('member', members);
        throw new Error(`Redis has ${listed[0]} members of the cluster: it may have ${membersMax}`);
      }
      const found: Member[] = [];
      for (let at = 0; at + 2 < listed.length; at += 3) {
        const [id = '', text = '', order = ''] = listed.slice(at, at + 3);
        const announcement = id === '' ? null : readAnnouncement(id, text);
        if (announcement !== null) found.push({ ...announcement, order: orderOf(id, order) });
        else if (id !== '') met('member', `${members} ${id}`);
        else met(order === 'orders' ? 'order' : 'member', order === 'orders' ? orders : members);
      }
      return found.sort((a, b) => (a.id < b.id ? -1 : 1));
    },
    async order(id, order) {
      if (order === null) return (await redis.hdel(orders, id)) === 1;
      return (await redis.hset(orders, id, order)) === 0;
    },
  };
}
