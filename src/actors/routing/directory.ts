import { LedgerError } from '../../domain/errors.ts';
import type { Command } from '../../domain/ledger/command.ts';
import { every } from '../../runtime/clock/clock.ts';
import type { BatchCounts } from '../batching/batch-window.ts';
import {
  hopsMax,
  ledgersInMemoryMax,
  ledgersLoadedBetweenSweeps,
  passivateAfterMs,
  passivateWhenFullAfterMs,
} from '../bounds.ts';
import type { CommandOutcome } from '../inbox/outcome.ts';
import {
  clockIsOff,
  notRunHere,
  outcomeUnknown,
  refusedWhenResubmitted,
  stopping,
  timeIsUp,
} from '../inbox/refusals.ts';
import { LedgerActor, type LedgerActorParts } from '../ledger/ledger-actor.ts';
import { ActivationLimiter } from './activation-limiter.ts';
import { NotOwner, type Peers, PeerUnreachable } from './peers.ts';
import type { NodeId, Placement } from './placement.ts';
import { shardOf } from './shard.ts';

export interface DirectoryParts extends LedgerActorParts {
  readonly self: NodeId;
  readonly shardCount: number;
  readonly placement: Placement;
  readonly peers: Peers;
  /** No limit if left out. */
  readonly activationsPerSecond?: number;
}

/**
 * Finds the actor of a ledger, on this node or another one, and has it run commands.
 *
 * If no other node can be reached, this node runs the command: a claim in the store decides who writes, not placement.
 * A node whose clock is off sends commands of other nodes back, and refuses the rest.
 */
export class Directory {
  readonly #parts: DirectoryParts;
  readonly #activations: ActivationLimiter | null;
  /** The ledgers in memory, by their shards and ids. */
  readonly #shards = new Map<number, Map<string, LedgerActor>>();
  /** Shards of recent ledgers, since each costs a hash to compute. */
  readonly #shardNumbers = new Map<string, number>();
  /** The node that last ran a command of the shard is asked first. */
  readonly #owners = new Map<number, NodeId>();
  /** Shards that are being handed over. New commands for them wait until that has ended. */
  readonly #leaving = new Map<number, Promise<void>>();
  readonly #cancelSweeps: () => void;
  #closing = false;
  #loaded = 0;

  constructor(parts: DirectoryParts) {
    this.#parts = parts;
    this.#activations =
      parts.activationsPerSecond === undefined ? null : new ActivationLimiter(parts.clock, parts.activationsPerSecond);
    this.#cancelSweeps = every(parts.clock, passivateAfterMs / 6, () => this.#removeIdle());
  }

  async submit(command: Command): Promise<CommandOutcome> {
    if (this.#closing) throw stopping();
    const shard = this.#shardOf(command.ledgerId);
    const owner = this.#owners.get(shard) ?? (await this.#locate(shard));
    if (owner === null || owner === this.#parts.self) return this.#runHere(shard, command);
    return this.#forward(owner, shard, this.#keyed(command));
  }

  /** Runs a command of another node. NotOwner: another node is known to run the shard, and nothing was done. */
  async carryOut(command: Command): Promise<CommandOutcome> {
    const shard = this.#shardOf(command.ledgerId);
    for (;;) {
      const owner = await this.#locate(shard);
      if (owner !== null && owner !== this.#parts.self) throw new NotOwner(owner);
      if (this.#closing) throw new NotOwner(null);
      const left = this.#leaving.get(shard);
      if (left === undefined) {
        if (this.#isClockOff()) throw new NotOwner(null);
        return this.#admit(shard, command);
      }
      await this.#untilLeft(left, command);
    }
  }

  /** See LedgerActor. Rejects with `unavailable`, and claims nothing, if this node does not run the ledger. */
  async readBarrier(ledgerId: string): Promise<number> {
    const shard = this.#shardOf(ledgerId);
    const owner = await this.#locate(shard);
    if (this.#closing || owner !== this.#parts.self || this.#leaving.has(shard)) throw notRunHere();
    return this.#actor(shard, ledgerId).readBarrier();
  }

  /**
   * Hands a shard over: accepts no command for it, waits for the running ones, removes its ledgers from memory and
   * calls `release`. Commands that came meanwhile go to the owner that placement names then.
   */
  async leave(shard: number, release: () => Promise<void>): Promise<void> {
    await this.#leaving.get(shard);
    const done = Promise.withResolvers<void>();
    this.#leaving.set(shard, done.promise);
    try {
      await this.#close(shard);
      await release();
    } finally {
      this.#leaving.delete(shard);
      done.resolve();
    }
  }

  #shardOf(ledgerId: string): number {
    let shard = this.#shardNumbers.get(ledgerId);
    if (shard === undefined) {
      shard = shardOf(ledgerId, this.#parts.shardCount);
      if (this.#shardNumbers.size >= ledgersInMemoryMax) this.#shardNumbers.clear();
      this.#shardNumbers.set(ledgerId, shard);
    }
    return shard;
  }

  #locate(shard: number): Promise<NodeId | null> {
    return this.#parts.placement.locate(shard).catch(() => null);
  }

  /** A command that goes to another node needs a key, so that it is written once even if the answer is lost. */
  #keyed(command: Command): Command {
    if (command.commandKeys.length > 0) return command;
    const id = Buffer.from(this.#parts.random(16)).toString('hex');
    return { ...command, commandKeys: [{ id, fingerprint: id, permanent: false }] };
  }

  async #forward(owner: NodeId, shard: number, command: Command): Promise<CommandOutcome> {
    let asked = owner;
    for (let hop = 1; ; hop++) {
      try {
        const outcome = await this.#parts.peers.ask(asked, command);
        this.#owners.set(shard, asked);
        return outcome;
      } catch (error) {
        if (error instanceof NotOwner || error instanceof PeerUnreachable) this.#owners.delete(shard);
        if (error instanceof PeerUnreachable && error.mayHaveArrived)
          return this.#runAgain(shard, command, asked, error);
        if (error instanceof PeerUnreachable) return this.#runHere(shard, command);
        if (!(error instanceof NotOwner)) throw error;
        const next = error.owner;
        if (next === null || next === asked || next === this.#parts.self || hop >= hopsMax)
          return this.#runHere(shard, command);
        asked = next;
      }
    }
  }

  /** Another node, `asked`, may have run the command, or may be running it. The log is to name it. */
  async #runAgain(shard: number, command: Command, asked: NodeId, silence: Error): Promise<CommandOutcome> {
    try {
      return await this.#runHere(shard, { ...command, resubmitted: true });
    } catch (error) {
      if (!(error instanceof LedgerError)) throw error;
      const refusal = refusedWhenResubmitted(error);
      if (refusal.code !== 'outcome_unknown') throw refusal;
      const reasons = [silence, refusal.cause ?? refusal];
      throw outcomeUnknown(
        new AggregateError(reasons, `${asked} gave no answer that counts, and this node refused the command`),
      );
    }
  }

  /** Synchronous unless the shard is being handed over. Throws `unavailable`. */
  #runHere(shard: number, command: Command): Promise<CommandOutcome> {
    // After every wait: nothing is loaded after closing.
    if (this.#closing) throw stopping();
    const left = this.#leaving.get(shard);
    if (left !== undefined) return this.#untilLeft(left, command).then(() => this.submit(command));
    if (this.#isClockOff()) throw clockIsOff();
    return this.#admit(shard, command);
  }

  #isClockOff(): boolean {
    return this.#parts.isClockRight?.() === false;
  }

  /** Synchronous unless a new ledger has to wait to be loaded, so that commands keep their order. */
  #admit(shard: number, command: Command): Promise<CommandOutcome> {
    const { ledgerId, deadline } = command;
    const isLoaded = this.#shards.get(shard)?.get(ledgerId)?.stopped === false;
    const admitted = isLoaded ? null : (this.#activations?.take(ledgerId, deadline) ?? null);
    return admitted === null
      ? this.#actor(shard, ledgerId).submit(command)
      : this.#admitAfter(admitted, shard, command);
  }

  async #admitAfter(admitted: Promise<void>, shard: number, command: Command): Promise<CommandOutcome> {
    await admitted;
    if (this.#closing) throw stopping();
    const left = this.#leaving.get(shard);
    if (left === undefined) return this.#actor(shard, command.ledgerId).submit(command);
    await this.#untilLeft(left, command);
    return this.submit(command);
  }

  /** Waits for `left`. Throws `unavailable` at the command's deadline. */
  async #untilLeft(left: Promise<void>, { deadline }: Command): Promise<void> {
    const { clock } = this.#parts;
    const due = Promise.withResolvers<never>();
    const cancel = clock.after(Math.max(0, deadline - clock.now()), () => due.reject(timeIsUp()));
    await Promise.race([left, due.promise]).finally(cancel);
  }

  load(): { readonly ledgers: number; readonly waiting: number } {
    let ledgers = 0;
    let waiting = 0;
    for (const shard of this.#shards.values()) {
      ledgers += shard.size;
      for (const actor of shard.values()) waiting += actor.waiting;
    }
    return { ledgers, waiting };
  }

  get batches(): BatchCounts {
    return this.#parts.batches;
  }

  #actor(number: number, ledgerId: string): LedgerActor {
    const shard = this.#shards.get(number) ?? new Map<string, LedgerActor>();
    const held = shard.get(ledgerId);
    if (held?.stopped === false) return held;
    const actor = new LedgerActor(ledgerId, this.#parts);
    this.#shards.set(number, shard.set(ledgerId, actor));
    this.#loaded += 1;
    if (this.#loaded >= ledgersLoadedBetweenSweeps) this.#removeIdle();
    return actor;
  }

  /** Nothing may be submitted to the shard any more. */
  async #close(shard: number): Promise<void> {
    await Promise.all(Array.from(this.#shards.get(shard)?.values() ?? [], (actor) => actor.close()));
    this.#shards.delete(shard);
  }

  #removeIdle(): void {
    this.#loaded = 0;
    const isFull = this.load().ledgers > ledgersInMemoryMax;
    const before = this.#parts.clock.now() - (isFull ? passivateWhenFullAfterMs : passivateAfterMs);
    for (const shard of this.#shards.values()) {
      for (const [ledgerId, actor] of shard) if (actor.stopped || actor.passivate(before)) shard.delete(ledgerId);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing = true;
    this.#cancelSweeps();
    await Promise.all(Array.from(this.#shards.keys(), (shard) => this.#close(shard)));
  }
}
