import type { Command } from '../domain/command.ts';
import { LedgerError } from '../domain/errors.ts';
import { parseRow } from '../domain/row.ts';
import type { AuthoritySigner } from '../domain/seal.ts';
import type { Claim, LedgerStore } from '../store/ledger-store.ts';
import { type BatchNeed, unpaced } from './batch-pacing.ts';
import { readForBatch } from './batch-reads.ts';
import { batchBytesMax, batchEventsMax, mailboxLimits } from './bounds.ts';
import { BrokenChain } from './broken-chain.ts';
import { type Clock, sleep } from './clock.ts';
import { CommandQueue } from './command-queue.ts';
import type { CommitListener } from './commit-listener.ts';
import { CommittedLedger, type WriteResult } from './committed-ledger.ts';
import { BatchFailed, type CommandResult, type DecidedBatch, decideBatch } from './decide-batch.ts';
import { FenceBackoff } from './fence-backoff.ts';
import { GroupGrowth } from './group-growth.ts';
import type { MailboxLimits } from './mailbox.ts';
import type { ActorMeter, ClaimReason } from './meter.ts';
import type { CommandOutcome } from './outcome.ts';
import type { PendingCommand } from './pending-command.ts';
import { clockIsOff, damagedReplay, outcomeUnknown, reloading, somethingWrong, timeIsUp } from './refusals.ts';
import { type SharedActorState, sharedActorState } from './shared-actor-state.ts';
import type { SigningKeys } from './signing-keys.ts';

export type { ActorMeter } from './meter.ts';

/** What every ledger's actor of a node shares. */
export interface LedgerActorParts {
  readonly store: LedgerStore;
  readonly keys: SigningKeys;
  readonly authority: () => AuthoritySigner;
  readonly clock: Clock;
  /** Milliseconds from any beginning, as long as the process runs; never goes back. */
  readonly monotonicMs: () => number;
  readonly random: (bytes: number) => Uint8Array;
  readonly meter: ActorMeter;
  readonly outbox?: CommitListener;
  /** What may wait for one ledger; absent: the default. */
  readonly queueLimits?: MailboxLimits;
  /** Whether this node's clock may decide and date. Absent: it always may. */
  readonly isClockRight?: () => boolean;
  /** Rows are read back before they are written: on nodes that carry out what other nodes ask for. false if left out. */
  readonly checksRows?: boolean;
}

/**
 * One ledger in memory. It owns the ledger's mailbox, gives out seq, created_at and hash, and commits in groups: while one
 * write is in flight, whatever arrives forms the next batch.
 *
 * Invariants: one write in flight; nothing is answered as written before the store has acknowledged it, nor refused for the
 * ledger's state before the store has confirmed that claim and head still stand; whatever is unexpected stops the actor for good, and
 * the next command builds a new one from the log.
 */
export class LedgerActor {
  readonly ledgerId: string;
  readonly #parts: LedgerActorParts;
  readonly #nodeWide: SharedActorState;
  readonly #intake: CommandQueue;
  readonly #growth: GroupGrowth;
  readonly #yielding = new FenceBackoff();
  readonly #ledger: CommittedLedger;
  /** The letters that are being worked on, and what was sent to the store of them. */
  #batch: PendingCommand[] = [];
  #sent: DecidedBatch | null = null;
  /** Those who ask what is certain. */
  readonly #asking: PromiseWithResolvers<number>[] = [];
  /** null while there is nothing to do. */
  #work: Promise<void> | null = null;
  #stopped = false;
  /** Whoever has it closed waits for it, and so do those who come for its shard. */
  #isClosing = false;
  #lastUsed: number;

  constructor(ledgerId: string, parts: LedgerActorParts, node = sharedActorState(parts.clock, unpaced)) {
    this.ledgerId = ledgerId;
    this.#parts = parts;
    this.#nodeWide = node;
    this.#intake = new CommandQueue(parts.clock, parts.queueLimits ?? mailboxLimits);
    this.#growth = new GroupGrowth(parts.clock, node.pace.quietMs);
    this.#ledger = new CommittedLedger(ledgerId, { ...parts, marks: node.marks });
    this.#lastUsed = parts.clock.now();
  }

  /** No more commands are taken; a new actor has to be made. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Milliseconds since 1970 of the last command's end; null while there is something to do. */
  get idleSince(): number | null {
    return this.#work === null ? this.#lastUsed : null;
  }

  get waiting(): number {
    return this.#intake.size;
  }

  /** Carries a command out: its outcome, or the LedgerError that it is refused with. */
  submit(command: Command): Promise<CommandOutcome> {
    if (this.#stopped) return Promise.reject(reloading());
    return this.#intake.submit(command, this.#wake);
  }

  /**
   * Answers the seq of the ledger's newest event (-1: it has none) once that is certain: every event up to it has its projections, whoever
   * wrote it, and no write that was begun before on any node can land any more. Costs a read where this node has written last, and otherwise
   * a claim. Rejects with what the store throws, or `unavailable`.
   */
  readBarrier(): Promise<number> {
    if (this.#stopped) return Promise.reject(reloading());
    const asked = Promise.withResolvers<number>();
    this.#asking.push(asked);
    this.#wake();
    return asked.promise;
  }

  readonly #wake = (): void => {
    this.#work ??= this.#run();
  };

  /** Takes the actor out of memory if it has nothing to do: saves what makes the next activation short. True if it is gone. */
  passivate(): boolean {
    if (this.#work !== null) return false;
    void this.#leave();
    return true;
  }

  /** Takes the actor out of memory once all that was submitted is answered. */
  async close(): Promise<void> {
    this.#isClosing = true;
    while (this.#work !== null) await this.#work;
    await this.#leave();
  }

  async #leave(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await this.#ledger.saveWhenLeaving();
  }

  async #run(): Promise<void> {
    // What arrives in the same tick of the event loop joins the first batch.
    await Promise.resolve();
    const { watch, pacing, pace, turns } = this.#nodeWide;
    const stopWatching = watch.begin(() => this.#lookAtDeadlines());
    while ((this.#intake.size > 0 || this.#asking.length > 0) && !this.#stopped) {
      this.#growth.start();
      const turn = pacing.begin(() => this.#turnNeed());
      if (turn !== undefined) await turn;
      const half = Math.floor(this.#intake.size / 2);
      const eventsMax = Math.max(batchEventsMax, Math.min(half, pace.crowdedMax));
      this.#batch = this.#intake.take(eventsMax, batchBytesMax);
      turns.running += 1;
      try {
        await this.#settle();
      } catch (error) {
        this.#stop(error);
      } finally {
        this.#batch = [];
        turns.running -= 1;
        pacing.end();
      }
      if (this.#asking.length > 0) await this.#tellCertainty();
    }
    stopWatching();
    this.#lastUsed = this.#parts.clock.now();
    this.#work = null;
  }

  /** Who has it closed, or asks what is certain, waits for a turn to end. */
  #turnNeed(): BatchNeed {
    if (this.#isClosing || this.#asking.length > 0) return 'haste';
    const isWhole = this.#intake.holds(batchEventsMax, batchBytesMax) || this.#growth.isWhole(this.#intake.size);
    return isWhole ? 'nothing' : 'more';
  }

  /** That it could not be made certain is no harm to the commands: their own claim tells them. */
  async #tellCertainty(): Promise<void> {
    const asking = this.#asking.splice(0);
    try {
      if (this.#stopped) throw reloading();
      const seq = await this.#ledger.makeCertain();
      for (const { resolve } of asking) resolve(seq);
    } catch (error) {
      for (const { reject } of asking) reject(error);
    }
  }

  /** Works on the batch until each of its letters has its answer. */
  async #settle(): Promise<void> {
    const { store, keys, clock, authority, random, meter } = this.#parts;
    const replays: Promise<void>[] = [];
    let reason: ClaimReason = 'activation';
    while (this.#dropLate()) {
      this.#checkClock();
      const began = clock.now();
      const held = this.#ledger.claim;
      const claim = held ?? (await this.#activate(reason));
      const reads = await readForBatch(this.ledgerId, this.#batch, {
        store,
        keys,
        clock,
        masters: this.#ledger.masters,
        isNew: (mark) => this.#ledger.isNew(mark),
      });
      // From here to the store nothing is waited for: a command whose time is up by now is certain not to be written.
      if (!this.#dropLate()) break;
      this.#checkClock();
      const context = { reads, authority: authority(), random };
      const turn = decideBatch(this.#ledger.state, this.#batch, context);
      for (const verdict of turn.verdicts) if (verdict.kind === 'replayed') replays.push(this.#replay(verdict));
      const decided = turn.verdicts.filter(({ kind }) => kind !== 'replayed').map(({ letter }) => letter);
      this.#batch = [...decided, ...turn.deferred];
      const written = await this.#write(claim, turn);
      if (held === null) this.#yielding.turnTook(clock.now() - began);
      if (written === 'stands') {
        this.#yielding.stood();
        if (this.#batch.length > 0) this.#nodeWide.turns.stood += 1;
        if (turn.entries.length > 0) this.#parts.outbox?.committed(this.ledgerId, turn.entries);
        this.#answer(turn);
        this.#batch = [...turn.deferred];
        continue;
      }
      if (written === 'unsettled') throw outcomeUnknown();
      if (written === 'fenced') {
        meter.fenced();
        const [byte = 0] = random(1);
        const waitMs = this.#yielding.fenced(this.#ledger.state.seq, byte / 256);
        this.#ledger.forget();
        reason = 'fenced';
        if (waitMs > 0) await this.#rest(waitMs);
      }
    }
    await Promise.all(replays);
  }

  /** Throws `unavailable`, so that the actor stops, while this node's clock is off: nothing of the batch is claimed or written. */
  #checkClock(): void {
    if (this.#parts.isClockRight?.() === false) throw clockIsOff();
  }

  async #activate(reason: ClaimReason): Promise<Claim> {
    const claim = await this.#ledger.activate(reason);
    this.#yielding.claimed(this.#ledger.state.seq);
    this.#parts.outbox?.claimed(this.ledgerId);
    return claim;
  }

  /** Refuses what is too late to be sent; whether any of the batch is left. */
  #dropLate(): boolean {
    this.#batch = this.#intake.inTime(this.#batch);
    return this.#batch.length > 0;
  }

  /** Has the store make a turn durable, or, where there are only refusals, confirm the state they rest on. */
  async #write(claim: Claim, turn: DecidedBatch): Promise<WriteResult> {
    if (this.#batch.length === 0) return 'stands';
    if (turn.entries.length === 0) return this.#ledger.confirm(claim);
    const { outbox } = this.#parts;
    this.#sent = turn;
    outbox?.writing(this.ledgerId, turn.entries[0]?.seq ?? 0);
    let written: WriteResult = 'unsettled';
    try {
      written = await this.#ledger.write(claim, turn);
      return written;
    } finally {
      this.#sent = null;
      outbox?.settled(this.ledgerId);
      if (written === 'unsettled') outbox?.unsettled(this.ledgerId, turn.entries);
    }
  }

  /** The turn stands: what was written is told before anything else may fail. */
  #answer(turn: DecidedBatch): void {
    for (const verdict of turn.verdicts) {
      if (verdict.kind === 'replayed') continue;
      this.#parts.meter.verdict(verdict.kind);
      if (verdict.kind === 'written') verdict.letter.resolve({ event: verdict.event, replayed: false });
      else this.#intake.refuse(verdict.letter, verdict.error);
    }
    this.#ledger.tidy(turn);
  }

  /** Answers with the event that the same command wrote before. It is in the log for good, so that nothing has to be confirmed. */
  async #replay(verdict: Extract<CommandResult, { kind: 'replayed' }>): Promise<void> {
    const { store, meter } = this.#parts;
    meter.verdict('replayed');
    try {
      const [entry] = await store.read(this.ledgerId, verdict.seq, 1);
      if (entry?.seq !== verdict.seq) throw new Error(`ledger ${this.ledgerId}: seq ${verdict.seq} is missing`);
      verdict.letter.resolve({ event: parseRow(entry.row), replayed: true });
    } catch (error) {
      const refusal = error instanceof LedgerError ? error : damagedReplay(this.ledgerId, verdict.seq, error);
      this.#intake.refuse(verdict.letter, refusal);
    }
  }

  /** While the actor is busy: whose time is up is told what is certain, whatever the store is doing. */
  #lookAtDeadlines(): void {
    this.#intake.refuseDue(this.#batch, (letter) => (this.#isInFlight(letter) ? outcomeUnknown() : timeIsUp()));
  }

  #isInFlight(letter: PendingCommand): boolean {
    return this.#sent?.verdicts.some((verdict) => verdict.letter === letter && verdict.kind === 'written') === true;
  }

  /** In the middle of a turn, which does not count meanwhile. Nothing can join its group any more, so that it goes on at once. */
  async #rest(waitMs: number): Promise<void> {
    const { pacing } = this.#nodeWide;
    pacing.end();
    await sleep(this.#parts.clock, waitMs);
    void pacing.begin(() => 'haste');
  }

  /** Crash-only: whoever waits is told what is certain, and the actor is never used again. */
  #stop(cause: unknown): void {
    this.#stopped = true;
    if (cause instanceof BrokenChain) this.#parts.meter.damaged();
    for (const letter of this.#batch) {
      if (cause instanceof LedgerError) this.#intake.refuse(letter, cause);
      else if (cause instanceof BatchFailed && cause.letter !== letter) this.#intake.refuse(letter, reloading(cause));
      else this.#intake.refuse(letter, somethingWrong(cause));
    }
    this.#intake.refuseAll(() => reloading(cause));
  }
}
