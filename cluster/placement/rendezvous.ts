import type { NodeId } from '../../src/actors/routing/placement.ts';
import { sha256Buffer } from '../../src/domain/keys/hash-buffer.ts';
import { isLeaving, type Member } from './members.ts';

/** Rendezvous hashing, so that a node that joins or leaves moves its own shards only. null: there is no node. */
export function desiredOwner(shard: number, nodes: readonly NodeId[]): NodeId | null {
  let best: NodeId | null = null;
  let bestWeight = -1;
  for (const node of nodes) {
    const weight = sha256Buffer(`${shard}|${node}`).readUIntBE(0, 6);
    if (weight > bestWeight || (weight === bestWeight && best !== null && node < best)) {
      best = node;
      bestWeight = weight;
    }
  }
  return best;
}

/** Which node should run each shard, computed from the members. */
export class Assignment {
  readonly #desired: readonly (NodeId | null)[];
  readonly #keepers: ReadonlySet<NodeId>;
  /** Equal for equal sets of members, and different for others. */
  readonly signature: string;

  constructor(members: readonly Member[], shardCount: number) {
    const takers = members.filter((member) => !isLeaving(member) && member.order === null).map(({ id }) => id);
    this.#desired = Array.from({ length: shardCount }, (_, shard) => desiredOwner(shard, takers));
    this.#keepers = new Set(
      members.filter((member) => !isLeaving(member) && member.order === 'cordoned').map(({ id }) => id),
    );
    this.signature = signatureOf(members);
  }

  /** Returns the node that should run a shard of `owner`, or null. A cordoned owner keeps its shards. */
  of(shard: number, owner: NodeId | null): NodeId | null {
    if (owner !== null && this.#keepers.has(owner)) return owner;
    return this.#desired[shard] ?? null;
  }
}

export function signatureOf(members: readonly Member[]): string {
  return JSON.stringify(members.map((member) => [member.id, member.startedAt, isLeaving(member), member.order]));
}
