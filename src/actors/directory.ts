import type { Command } from '../domain/command.ts';
import { LedgerError } from '../domain/errors.ts';
import { ledgersInMemoryMax, passivateAfterMs } from './bounds.ts';
import type { LedgerActorParts } from './ledger-actor.ts';
import type { Outcome } from './outcome.ts';
import { NotOwner, type Peers, PeerUnreachable } from './peers.ts';
import type { NodeId, Placement } from './placement.ts';
import { Shard, shardOf } from './shard.ts';

export interface DirectoryParts extends LedgerActorParts {
  readonly self: NodeId;
  readonly shardCount: number;
  readonly placement: Placement;
  readonly peers: Peers;
}

/**
 * Finds the actor of a ledger, here or on another node, and has commands carried out by it.
 *
 * Where nobody else can be reached, the command is carried out here: a claim in the store, not placement, decides who writes.
 */
export class Directory {
  readonly #parts: DirectoryParts;
  readonly #shards = new Map<number, Shard>();
  #closing = false;
  #cancelSweep = () => {};

  constructor(parts: DirectoryParts) {
    this.#parts = parts;
    this.#armSweep();
  }

  /** The outcome of a command, or the LedgerError it was refused with. */
  async submit(command: Command): Promise<Outcome> {
    if (this.#closing) throw new LedgerError('unavailable', 'This node is stopping; nothing was written, retry.');
    const shard = shardOf(command.ledgerId, this.#parts.shardCount);
    const owner = await this.#parts.placement.locate(shard).catch(() => null);
    if (owner === null || owner === this.#parts.self) return this.#shard(shard).submit(command);
    return this.#forward(owner, shard, command);
  }

  async #forward(owner: NodeId, shard: number, command: Command): Promise<Outcome> {
    try {
      return await this.#parts.peers.ask(owner, shard, command);
    } catch (error) {
      if (!(error instanceof NotOwner) && !(error instanceof PeerUnreachable)) throw error;
      return this.#shard(shard).submit({ ...command, resubmitted: true });
    }
  }

  /** Ledgers in memory, and commands that wait for them. */
  load(): { readonly ledgers: number; readonly waiting: number } {
    let ledgers = 0;
    let waiting = 0;
    for (const shard of this.#shards.values()) {
      ledgers += shard.size;
      waiting += shard.waiting;
    }
    return { ledgers, waiting };
  }

  #shard(number: number): Shard {
    let shard = this.#shards.get(number);
    if (shard === undefined) {
      shard = new Shard(this.#parts);
      this.#shards.set(number, shard);
    }
    return shard;
  }

  #armSweep(): void {
    this.#cancelSweep = this.#parts.clock.after(passivateAfterMs / 6, () => {
      const now = this.#parts.clock.now();
      const crowded = this.load().ledgers > ledgersInMemoryMax;
      for (const shard of this.#shards.values()) shard.passivate(crowded ? now - 1_000 : now - passivateAfterMs);
      this.#armSweep();
    });
  }

  /** Takes no more commands, lets the ones that run end, and saves snapshots. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing = true;
    this.#cancelSweep();
    const { clock } = this.#parts;
    for (;;) {
      for (const shard of this.#shards.values()) shard.passivate(clock.now());
      if (this.load().ledgers === 0) return;
      await new Promise<void>((resolve) => void clock.after(5, resolve));
    }
  }
}
