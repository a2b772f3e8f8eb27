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
  /** It gives its shards away: it is stopping, the store does not answer it, or its clock is off. */
  readonly draining: boolean;
  /** How far its clock is ahead of the store's, in milliseconds; negative: behind. Absent before it has looked, and from an older version. */
  readonly clockAheadMs?: number;
}

/** One run of a node. A node that starts again under its id is another run, and so is another node that was given the same id by mistake. */
export type Run = Pick<Announcement, 'id' | 'address' | 'startedAt'>;

export function isSameRun(one: Run, other: Run): boolean {
  return one.id === other.id && one.startedAt === other.startedAt && one.address === other.address;
}

/** What an operator wants of a node: `cordoned` takes no more shards, `draining` gives away those it has too. */
export type Order = 'cordoned' | 'draining';

export interface Member extends Announcement {
  readonly order: Order | null;
}

/** Where nodes announce themselves. Any method may fail. */
export interface MemberBoard {
  /**
   * Seen by all for `ttlMs`. While another run is seen under the id it has no effect: two nodes under one id would otherwise look to all
   * others like one that starts anew every second.
   */
  announce(announcement: Announcement, ttlMs: number): Promise<void>;
  /** This run alone: another one under its id stays. */
  withdraw(run: Run): Promise<void>;
  /** The nodes that were heard of, sorted by id. */
  list(): Promise<readonly Member[]>;
  /** null takes an order back. It stands for the id, whether or not there is such a node now. Answers whether one stood there before. */
  order(id: NodeId, order: Order | null): Promise<boolean>;
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
