import type { NodeId } from '../../src/actors/routing/placement.ts';

/** Each node hashes every shard with every member: 256 of them take a tenth of a second with 256 shards. */
export const membersMax = 256;

export interface Announcement {
  readonly id: NodeId;
  /** The host:port of its internal port. */
  readonly address: string;
  /** All ports that it listens on. Absent from nodes of an older version. */
  readonly ports?: readonly number[];
  /** ISO time. */
  readonly startedAt: string;
  /** The number of shards of its store. */
  readonly shardCount: number;
  /** Whether it hands its shards over: it is stopping, the store does not answer it, or its clock is off. */
  readonly draining: boolean;
  /** How far its clock is ahead of the store's, ms. Absent before its first comparison, and from older versions. */
  readonly clockAheadMs?: number;
}

/** One run of a node. A restart, or another node that has the same id by mistake, is another run. */
export type Run = Pick<Announcement, 'id' | 'address' | 'startedAt'>;

export function isSameRun(one: Run, other: Run): boolean {
  return one.id === other.id && one.startedAt === other.startedAt && one.address === other.address;
}

/** An operator's order to a node. `cordoned`: it takes no more shards. `draining`: it also hands its shards over. */
export type Order = 'cordoned' | 'draining';

export interface Member extends Announcement {
  readonly order: Order | null;
}

/** The list of living nodes. Any method may reject. */
export interface MemberBoard {
  /**
   * Announces a node for `ttlMs`. Has no effect while another run with the same id is announced: otherwise two nodes
   * with one id would look like one node that restarts again and again. Before `heldUntil`, which the last call for
   * this run returned, no other run can have been announced: what stands there all the same is replaced. Returns until
   * when the run is announced, by the clock of the list (ms). null: another run is.
   */
  announce(announcement: Announcement, ttlMs: number, heldUntil?: number): Promise<number | null>;
  /** Removes the announcement of this run, not of another one with the same id. */
  withdraw(run: Run): Promise<void>;
  /** Returns the announced nodes, sorted by id. */
  list(): Promise<readonly Member[]>;
  /** Sets or removes (null) the order for an id, whether or not the node exists. Returns whether there was one. */
  order(id: NodeId, order: Order | null): Promise<boolean>;
}

export function isLeaving(member: Member): boolean {
  return member.draining || member.order === 'draining';
}

/** Whether any other node serves calls and is not leaving. */
export function othersServe(members: readonly Member[], self: NodeId): boolean {
  return members.some((member) => member.id !== self && !isLeaving(member));
}

/** Returns the announced ports of all members, and the ports of their addresses. */
export function memberPorts(members: readonly Member[]): number[] {
  return members.flatMap(({ address, ports = [] }) => {
    const reached = /:(\d+)$/.exec(address)?.[1];
    return reached === undefined ? ports : [...ports, Number(reached)];
  });
}
