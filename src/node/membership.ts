import type { Socket } from 'node:net';
import type { Registry } from 'prom-client';
import type { Directory } from '../actors/routing/directory.ts';
import type { Command } from '../domain/ledger/command.ts';
import type { Readiness } from '../rpc/internal-listener.ts';
import type { RemoteHeads } from '../service/following/ledger-heads.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';

export type SharedWebhooks = Pick<Webhooks, 'takeOver' | 'giveUp' | 'catchUp' | 'heard' | 'lookForDue'>;

interface NodePorts {
  readonly http: number;
  readonly grpc: number;
  readonly internal: number;
}

/** What makes a node a member of a cluster. cluster/ implements it; a single node has none. */
export interface Membership {
  readonly shardCount: number;
  readonly activationsPerSecond: number;
  /** Whether this node works for the ledger or subscription with this id, or does the background work of this name. */
  ownsShardOf(id: string): boolean;
  /** Tells the node that sends for a subscription that a delivery may be due. The message may get lost. */
  tellOthers(subscriptionId: string): void;
  /** What followers on one node hear of the commits of another one. */
  readonly remoteHeads: RemoteHeads;
  /** Takes over a connection that does not begin like HTTP/1. `proved`: the other end is another node. */
  takeConnection(socket: Socket, proved: () => void): void;
  /** Further GET paths of the internal port. Each answers JSON. */
  readonly pages: ReadonlyMap<string, () => Promise<object>>;
  readiness(): Promise<Readiness>;
  /** Whether this node's clock is right, so that it may decide and date events. */
  isClockRight(): boolean;
  /** Ports of all known nodes, on whatever machine they are. */
  ports(): Iterable<number>;
  /** From now on the node takes shards. `checkSignature` rejects with the refusal of another node's command. */
  join(
    directory: Directory,
    webhooks: SharedWebhooks,
    registry: Registry,
    ports: NodePorts,
    checkSignature: (command: Command) => Promise<void>,
  ): void;
  /** Gives the node's shards away while its listeners are still open. Ends within a bounded time. */
  leave(): Promise<void>;
  close(): Promise<void>;
}
