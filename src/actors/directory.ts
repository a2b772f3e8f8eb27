import type { Command } from '../domain/command.ts';
import { LedgerError } from '../domain/errors.ts';
import { ActivationLimiter } from './activation-limiter.ts';
import type { BatchCounts } from './batch-counts.ts';
import { type BatchPace, unpaced } from './batch-pacing.ts';
import {
  hopsMax,
  ledgersInMemoryMax,
  ledgersLoadedBetweenLooks,
  passivateAfterMs,
  passivateWhenCrowdedAfterMs,
} from './bounds.ts';
import type { LedgerActorParts } from './ledger-actor.ts';
import type { CommandOutcome } from './outcome.ts';
import { NotOwner, type Peers, PeerUnreachable } from './peers.ts';
import type { NodeId, Placement } from './placement.ts';
import { clockIsOff, notRunHere, refusedAgain, stopping } from './refusals.ts';
import { Shard, shardOf } from './shard.ts';
import { type SharedActorState, sharedActorState } from './shared-actor-state.ts';

export interface DirectoryParts extends LedgerActorParts {
  readonly self: NodeId;
  readonly shardCount: number;
  readonly placement: Placement;
  readonly peers: Peers;
  /** Ledgers that may come into memory in a second; none given: no limit. */
  readonly activationsPerSecond?: number;
  /** None given: ledgers do not wait before their turns. */
  readonly turnPace?: BatchPace;
}

/**
 * Finds the actor of a ledger, here or on another node, and has commands carried out by it.
 *
 * Where nobody else can be reached, the command is carried out here: a claim in the store, not placement, decides who writes. A node whose clock
 * is off carries nothing out: what other nodes send it goes back to them, and the rest is refused.
 */
export class Directory {
  readonly #parts: DirectoryParts;
  readonly #pace: ActivationLimiter | null;
  readonly #nodeWide: SharedActorState;
  readonly #shards = new Map<number, Shard>();
  /** Shards of ledgers that were asked for lately: to compute one takes a hash. */
  readonly #shardNumbers = new Map<string, number>();
  /** Other nodes that carried a command of the shard out: asked first, until one says no or cannot be reached. */
  readonly #owners = new Map<number, NodeId>();
  /** Shards that are being handed over; what comes for them waits until that is done. */
  readonly #leaving = new Map<number, Promise<void>>();
  #closing = false;
  #loaded = 0;
  #cancelLook = () => {};

  constructor(parts: DirectoryParts) {
    this.#parts = parts;
    this.#nodeWide = sharedActorState(parts.clock, parts.turnPace ?? unpaced);
    this.#pace =
      parts.activationsPerSecond === undefined ? null : new ActivationLimiter(parts.clock, parts.activationsPerSecond);
    this.#armLook();
  }

  /** The outcome of a command, or the LedgerError it was refused with. */
  async submit(command: Command): Promise<CommandOutcome> {
    if (this.#closing) throw stopping();
    const shard = this.#shardOf(command.ledgerId);
    const owner = this.#owners.get(shard) ?? (await this.#locate(shard));
    if (owner === null || owner === this.#parts.self) return this.#runHere(shard, command);
    return this.#forward(owner, shard, this.#marked(command));
  }

  /**
   * The outcome of a command that another node sent here as to the owner of its shard, or the LedgerError it was refused with. NotOwner
   * where another node is known to run the shard: then nothing was done.
   */
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
      await left;
    }
  }

  /**
   * Makes certain what stands in a ledger that this node runs; see LedgerActor. LedgerError `unavailable` where it does not run it, or not
   * for long: nothing is claimed then.
   */
  async makeCertain(ledgerId: string): Promise<number> {
    const shard = this.#shardOf(ledgerId);
    const owner = await this.#locate(shard);
    if (this.#closing || owner !== this.#parts.self || this.#leaving.has(shard)) throw notRunHere();
    return this.#shard(shard).makeCertain(ledgerId);
  }

  /**
   * Hands a shard over: takes no command for it, lets the ones that run end, takes its ledgers out of memory and calls `release`. What came
   * meanwhile goes to whom placement names then. Rejects with what `release` rejects with.
   */
  async leave(shard: number, release: () => Promise<void>): Promise<void> {
    await this.#leaving.get(shard);
    const done = Promise.withResolvers<void>();
    this.#leaving.set(shard, done.promise);
    try {
      await this.#shards.get(shard)?.close();
      this.#shards.delete(shard);
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

  /** A command that goes to another node can be found again, so that it lands once even where that node's answer is lost. */
  #marked(command: Command): Command {
    if (command.marks.length > 0) return command;
    const id = Buffer.from(this.#parts.random(16)).toString('hex');
    return { ...command, marks: [{ id, fingerprint: id, permanent: false }] };
  }

  async #forward(owner: NodeId, shard: number, command: Command): Promise<CommandOutcome> {
    let asked = owner;
    for (let hop = 1; ; hop++) {
      try {
        const outcome = await this.#parts.peers.ask(asked, shard, command);
        this.#owners.set(shard, asked);
        return outcome;
      } catch (error) {
        if (error instanceof NotOwner || error instanceof PeerUnreachable) this.#owners.delete(shard);
        if (error instanceof PeerUnreachable && error.mayHaveArrived) return this.#runAgain(shard, command);
        if (error instanceof PeerUnreachable) return this.#runHere(shard, command);
        if (!(error instanceof NotOwner)) throw error;
        const next = error.owner;
        if (next === null || next === asked || next === this.#parts.self || hop >= hopsMax)
          return this.#runHere(shard, command);
        asked = next;
      }
    }
  }

  /** Carries a command out that another node may have carried out, or may be at. */
  async #runAgain(shard: number, command: Command): Promise<CommandOutcome> {
    try {
      return await this.#runHere(shard, { ...command, resubmitted: true });
    } catch (error) {
      throw error instanceof LedgerError ? refusedAgain(error) : error;
    }
  }

  /** Synchronous as far as the shard is not being handed over. Throws `unavailable`. */
  #runHere(shard: number, command: Command): Promise<CommandOutcome> {
    // Asked again after every wait: nothing comes into memory behind the closing.
    if (this.#closing) throw stopping();
    const left = this.#leaving.get(shard);
    if (left !== undefined) return left.then(() => this.submit(command));
    if (this.#isClockOff()) throw clockIsOff();
    return this.#admit(shard, command);
  }

  #isClockOff(): boolean {
    return this.#parts.isClockRight?.() === false;
  }

  /** Synchronous as far as no new ledger has to wait for its turn, so that commands keep their order. */
  #admit(number: number, command: Command): Promise<CommandOutcome> {
    const shard = this.#shard(number);
    const isLoaded = this.#pace === null || shard.has(command.ledgerId);
    const turn = isLoaded ? null : this.#pace.take(command.ledgerId, command.deadline);
    return turn === null ? shard.submit(command) : this.#admitAfter(turn, number, command);
  }

  async #admitAfter(turn: Promise<void>, number: number, command: Command): Promise<CommandOutcome> {
    await turn;
    if (this.#closing) throw stopping();
    const left = this.#leaving.get(number);
    if (left === undefined) return this.#shard(number).submit(command);
    await left;
    return this.submit(command);
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

  /** How the turns of this node's ledgers get on. */
  get turns(): BatchCounts {
    return this.#nodeWide.turns;
  }

  #shard(number: number): Shard {
    let shard = this.#shards.get(number);
    if (shard === undefined) {
      shard = new Shard(this.#parts, this.#nodeWide, () => this.#noteLoad());
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
