import type { Command } from '../../domain/ledger/command.ts';
import type { CommandOutcome } from '../inbox/outcome.ts';
import type { NodeId } from './placement.ts';

/** The asked node does not run that shard. `owner` is the node that it believes to run it; null if it knows none. */
export class NotOwner extends Error {
  readonly owner: NodeId | null;
  constructor(owner: NodeId | null) {
    super('the node asked does not run this shard');
    this.name = 'NotOwner';
    this.owner = owner;
  }
}

/** The node could not be asked, or gave no answer in time that this node can use. */
export class PeerUnreachable extends Error {
  /** The command may have arrived. It may have been carried out there, or may still be. */
  readonly mayHaveArrived: boolean;
  constructor(cause: unknown, mayHaveArrived = true) {
    super('a peer could not be reached', { cause });
    this.name = 'PeerUnreachable';
    this.mayHaveArrived = mayHaveArrived;
  }
}

export interface Peers {
  /** Rejects with the LedgerError that the command was refused with, NotOwner, or PeerUnreachable. */
  ask(node: NodeId, command: Command): Promise<CommandOutcome>;
}

export const noPeers: Peers = {
  ask: async (node) => {
    throw new PeerUnreachable(`this node stands alone and was asked to reach ${node}`, false);
  },
};
