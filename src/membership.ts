import type { Socket } from 'node:net';
import type { Registry } from 'prom-client';
import type { Directory } from './actors/directory.ts';
import type { Command } from './domain/command.ts';
import type { Readiness } from './rpc/internal-listener.ts';

/** Webhooks as they are shared between nodes. */
export interface SharedWebhooks {
  /** This node is to work for more ids; `own` is called when `ownsShardOf` may say so. */
  takeOver(isNew: (id: string) => boolean, own: () => void): Promise<void>;
  giveUp(isGone: (id: string) => boolean): void;
  catchUp(): Promise<void>;
  heard(subscriptionId: string): void;
  lookForDue(): void;
}

/** Ports that a node listens on. */
export interface NodePorts {
  readonly http: number;
  readonly grpc: number;
  readonly internal: number;
}

/** What makes a node one of several. cluster/ brings it; a node that stands alone has none. */
export interface Membership {
  readonly shardCount: number;
  /** Ledgers that may come into memory in a second. */
  readonly activationsPerSecond: number;
  /** Whether this node does the webhooks of the ledger or subscription of this id, or other work in the background of this name. */
  ownsShardOf(id: string): boolean;
  /** Tells the node that sends for a subscription that something may be due. May get lost. */
  tellOthers(subscriptionId: string): void;
  /** Takes over a connection to the internal port that does not begin like HTTP/1; calls `proved` once it is known to be another node's. */
  takeConnection(socket: Socket, proved: () => void): void;
  /** Further GET paths of the internal port; each answers JSON. */
  readonly pages: ReadonlyMap<string, () => Promise<object>>;
  readiness(): Promise<Readiness>;
  /** Whether this node's clock may decide and date. */
  isClockRight(): boolean;
  /** Ports of the nodes that were heard of; on whatever machine they are. */
  ports(): Iterable<number>;
  /**
   * The node can carry commands out: from now on it takes shards. `ports` are those that are open now. `checkSignature` rejects with what a
   * command of another node is refused with whose signature does not verify.
   */
  join(
    directory: Directory,
    webhooks: SharedWebhooks,
    registry: Registry,
    ports: NodePorts,
    checkSignature: (command: Command) => Promise<void>,
  ): void;
  /** The node stops: gives its shards away, while its listeners are still open. Bounded. */
  leave(): Promise<void>;
  /** The node has stopped. */
  close(): Promise<void>;
}
