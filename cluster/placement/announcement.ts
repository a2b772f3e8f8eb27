import type { Announcement } from './members.ts';
import { isNodeAddress } from './node-address.ts';
import { isNodeId } from './node-id.ts';

const startedAtMaxChars = 64;
const portsMax = 16;

/**
 * Parses the announcement under the id of a node. Returns null for anything that no version of a node writes: others
 * may write to Redis too.
 */
export function readAnnouncement(underId: string, text: string): Announcement | null {
  let value: Partial<Announcement>;
  try {
    value = JSON.parse(text) as Partial<Announcement>;
    if (typeof value !== 'object' || value === null) return null;
  } catch {
    return null;
  }
  const { id, address, ports, startedAt, draining, shardCount, clockAheadMs } = value;
  if (typeof id !== 'string' || id !== underId || !isNodeId(id)) return null;
  if (typeof address !== 'string' || !isNodeAddress(address)) return null;
  if (ports !== undefined && !(Array.isArray(ports) && ports.length <= portsMax && ports.every(isPort))) return null;
  if (typeof startedAt !== 'string' || startedAt.length > startedAtMaxChars) return null;
  return {
    id,
    address,
    ...(ports === undefined ? {} : { ports }),
    startedAt,
    draining: draining === true,
    shardCount: typeof shardCount === 'number' ? shardCount : Number.NaN,
    ...(typeof clockAheadMs === 'number' ? { clockAheadMs } : {}),
  };
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 65_535;
}
