import type { NodeId } from '../../src/actors/placement.ts';

/** A node as it announces itself. */
export interface Announcement {
  readonly id: NodeId;
  /** host:port of its internal port, for other nodes. */
  readonly address: string;
  /** All ports that it listens on. An older version does not tell. */
  readonly ports?: readonly number[];
  /** ISO time. */
  readonly startedAt: string;
  /** Of the store that it works on. */
  readonly shardCount: number;
  /** It gives its shards away: it is stopping, or the store does not answer it. */
  readonly draining: boolean;
}

/** What an operator wants of a node: `cordoned` takes no more shards, `draining` gives away those it has too. */
export type Order = 'cordoned' | 'draining';

export interface Member extends Announcement {
  readonly order: Order | null;
}

/** Where nodes announce themselves. Any method may fail. */
export interface MemberBoard {
  /** Seen by all for `ttlMs`. */
  announce(announcement: Announcement, ttlMs: number): Promise<void>;
  withdraw(id: NodeId): Promise<void>;
  /** The nodes that were heard of, sorted by id. */
  list(): Promise<readonly Member[]>;
  /** null takes an order back. It stands for the id, whether or not there is such a node now. */
  order(id: NodeId, order: Order | null): Promise<void>;
}

export function isLeaving(member: Member): boolean {
  return member.draining || member.order === 'draining';
}

/** Whether any node but this one is there to take calls. */
export function othersServe(members: readonly Member[], self: NodeId): boolean {
  return members.some((member) => member.id !== self && !isLeaving(member));
}

/** The ports of nodes: those that they tell, and the one at which others reach them. */
export function memberPorts(members: readonly Member[]): number[] {
  return members.flatMap(({ address, ports = [] }) => {
    const reached = /:(\d+)$/.exec(address)?.[1];
    return reached === undefined ? ports : [...ports, Number(reached)];
  });
}
