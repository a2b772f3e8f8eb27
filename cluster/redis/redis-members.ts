import type { Redis } from 'ioredis';
import type { Announcement, Member, MemberBoard, Order } from '../placement/members.ts';
import type { MetBadValue } from './bad-values.ts';
import { announceMember, listMembers, withdrawMember } from './lease-scripts.ts';
import { runScript } from './script.ts';

/** The hash of a cluster's members. */
export function membersKey(placement: string): string {
  return `members:{${placement}}`;
}

/**
 * Members in Redis: hashes `members:{placement}` (with the time until which each counts, by the clock of Redis) and `orders:{placement}`. What
 * stands there and was written by no node is passed over, and told to `met`.
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
        const [id = '', text = '', order = ''] = listed.slice(at, at + 3);
        const announcement = id === '' ? null : announcementOf(id, text);
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

const fieldCharactersMax = 300;
const addressForm = /^(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/?#@[\]]+):\d{1,5}$/;

/** null for what no version of a node announces under this id. */
function announcementOf(member: string, text: string): Announcement | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { id, address, ports, startedAt, draining, shardCount, clockAheadMs } = value as Partial<Announcement>;
  if (id !== member || !isShortText(address) || !isShortText(startedAt) || !addressForm.test(address)) return null;
  if (ports !== undefined && !(Array.isArray(ports) && ports.length <= 16 && ports.every(isPort))) return null;
  if (typeof shardCount !== 'number') return null;
  return {
    id,
    address,
    ...(ports === undefined ? {} : { ports }),
    startedAt,
    draining: draining === true,
    shardCount,
    ...(typeof clockAheadMs === 'number' ? { clockAheadMs } : {}),
  };
}

function isShortText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= fieldCharactersMax;
}

function isPort(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535;
}
