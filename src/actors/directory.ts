import type { Command } from '../domain/command.ts';
import { LedgerError } from '../domain/errors.ts';
import {
  hopsMax,
  ledgersInMemoryMax,
  ledgersLoadedBetweenLooks,
  passivateAfterMs,
  passivateWhenCrowdedAfterMs,
} from './bounds.ts';
import type { LedgerActorParts } from './ledger-actor.ts';
import type { Outcome } from './outcome.ts';
import { NotOwner, type Peers, PeerUnreachable } from './peers.ts';
import type { NodeId, Placement } from './placement.ts';
import { isRetryable, outcomeUnknown, stopping } from './refusals.ts';
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
  #loaded = 0;
  #cancelLook = () => {};

  constructor(parts: DirectoryParts) {
    this.#parts = parts;
    this.#armLook();
  }

  /** The outcome of a command, or the LedgerError it was refused with. */
  async submit(command: Command): Promise<Outcome> {
    if (this.#closing) throw stopping();
    const shard = shardOf(command.ledgerId, this.#parts.shardCount);
    const owner = await this.#parts.placement.locate(shard).catch(() => null);
    if (owner === null || owner === this.#parts.self) return this.#runHere(shard, command);
    return this.#forward(owner, shard, this.#marked(command));
  }

  /** A command that goes to another node can be found again, so that it lands once even where that node's answer is lost. */
  #marked(command: Command): Command {
    if (command.marks.length > 0) return command;
    const id = Buffer.from(this.#parts.random(16)).toString('hex');
    return { ...command, marks: [{ id, fingerprint: id, permanent: false }] };
  }

  async #forward(owner: NodeId, shard: number, command: Command): Promise<Outcome> {
    let asked = owner;
    for (let hop = 1; ; hop++) {
      try {
        return await this.#parts.peers.ask(asked, shard, command);
      } catch (error) {
        if (error instanceof PeerUnreachable) return this.#runAgain(shard, command);
        if (!(error instanceof NotOwner)) throw error;
        const next = error.owner;
        if (next === null || next === asked || next === this.#parts.self || hop >= hopsMax)
          return this.#runHere(shard, command);
        asked = next;
      }
    }
  }

  /** Carries a command out that another node may have carried out, or may be at: failing here says nothing about there. */
  async #runAgain(shard: number, command: Command): Promise<Outcome> {
    try {
      return await this.#runHere(shard, { ...command, resubmitted: true });
    } catch (error) {
      throw error instanceof LedgerError && isRetryable(error) ? outcomeUnknown(error) : error;
    }
  }

  async #runHere(shard: number, command: Command): Promise<Outcome> {
    // Asked again after every wait: nothing comes into memory behind the closing.
    if (this.#closing) throw stopping();
    return this.#shard(shard).submit(command);
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
      shard = new Shard(this.#parts, () => this.#noteLoad());
      this.#shards.set(number, shard);
    }
    return shard;
  }

  #noteLoad(): void {
    this.#loaded += 1;
    if (this.#loaded >= ledgersLoadedBetweenLooks) this.#lookForIdle();
  }

  #lookForIdle(): void {
    this.#loaded = 0;
    const crowded = this.load().ledgers > ledgersInMemoryMax;
    const before = this.#parts.clock.now() - (crowded ? passivateWhenCrowdedAfterMs : passivateAfterMs);
    for (const shard of this.#shards.values()) shard.passivate(before);
  }

  #armLook(): void {
    this.#cancelLook = this.#parts.clock.after(passivateAfterMs / 6, () => {
      this.#lookForIdle();
      this.#armLook();
    });
  }

  /** Takes no more commands, lets the ones that run end, and saves snapshots. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing = true;
    this.#cancelLook();
    await Promise.all(Array.from(this.#shards.values(), (shard) => shard.close()));
  }
}
