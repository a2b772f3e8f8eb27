import type { NodeId } from '../../src/actors/placement.ts';
import { sha256 } from '../../src/domain/hash.ts';
import { isLeaving, type Member } from './members.ts';

/**
 * Rendezvous hashing: a shard belongs to the node whose hash with it is the highest. So a node that comes or goes moves its own
 * shards alone. null: there is no node.
 */
export function desiredOwner(shard: number, nodes: readonly NodeId[]): NodeId | null {
  let best: NodeId | null = null;
  let bestWeight = -1;
  for (const node of nodes) {
    const weight = sha256(`${shard}|${node}`).readUIntBE(0, 6);
    if (weight > bestWeight || (weight === bestWeight && best !== null && node < best)) {
      best = node;
      bestWeight = weight;
    }
  }
  return best;
}

/** Who should run each shard, by the members that were heard of. */
export class Assignment {
  readonly #desired: readonly (NodeId | null)[];
  readonly #keepers: ReadonlySet<NodeId>;
  /** Tells one set of members from another. */
  readonly signature: string;

  constructor(members: readonly Member[], shardCount: number) {
    const takers = members.filter((member) => !isLeaving(member) && member.order === null).map(({ id }) => id);
    this.#desired = Array.from({ length: shardCount }, (_, shard) => desiredOwner(shard, takers));
    this.#keepers = new Set(
      members.filter((member) => !isLeaving(member) && member.order === 'cordoned').map(({ id }) => id),
    );
    this.signature = signatureOf(members);
  }

  /** The node that should run a shard that `owner` has now. A cordoned node keeps what it has. */
  of(shard: number, owner: NodeId | null): NodeId | null {
    if (owner !== null && this.#keepers.has(owner)) return owner;
    return this.#desired[shard] ?? null;
  }
}

export function signatureOf(members: readonly Member[]): string {
  return JSON.stringify(members.map((member) => [member.id, member.startedAt, isLeaving(member), member.order]));
}
