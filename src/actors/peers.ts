import type { Command } from '../domain/command.ts';
import type { CommandOutcome } from './outcome.ts';
import type { NodeId } from './placement.ts';

/** The node asked does not run that shard; `owner` is whom it believes to run it. */
export class NotOwner extends Error {
  readonly owner: NodeId | null;
  constructor(owner: NodeId | null) {
    super('the node asked does not run this shard');
    this.name = 'NotOwner';
    this.owner = owner;
  }
}

/** The node could not be asked, or did not answer in time. */
export class PeerUnreachable extends Error {
  /** The command may have come through: it may have been carried out there, or may yet be. */
  readonly mayHaveArrived: boolean;
  constructor(cause: unknown, mayHaveArrived = true) {
    super('a peer could not be reached', { cause });
    this.name = 'PeerUnreachable';
    this.mayHaveArrived = mayHaveArrived;
  }
}

/**
 * The way to other nodes. `ask` has the command carried out by the node that runs the shard: its outcome, or the
 * LedgerError that it was refused with; NotOwner or PeerUnreachable otherwise.
 */
export interface Peers {
  ask(node: NodeId, shard: number, command: Command): Promise<CommandOutcome>;
}
