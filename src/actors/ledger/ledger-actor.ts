import { LedgerError } from '../../domain/errors.ts';
import { parseRow } from '../../domain/event/row.ts';
import type { Command } from '../../domain/ledger/command.ts';
import type { AuthoritySigner } from '../../domain/ledger/seal.ts';
import { type Clock, sleep } from '../../runtime/clock/clock.ts';
import type { Claim } from '../../store/ledger-store.ts';
import type { BatchDelay, BatchWindow } from '../batching/batch-window.ts';
import { FenceBackoff } from '../batching/fence-backoff.ts';
import { mailboxLimits, snapshotsLeavingMaxMs } from '../bounds.ts';
import { CommandQueue } from '../inbox/command-queue.ts';
import type { DeadlineWatch } from '../inbox/deadline-watch.ts';
import type { MailboxLimits } from '../inbox/mailbox.ts';
import type { CommandOutcome } from '../inbox/outcome.ts';
import type { PendingCommand } from '../inbox/pending-command.ts';
import { clockIsOff, damagedReplay, outcomeUnknown, reloading, somethingWrong, timeIsUp } from '../inbox/refusals.ts';
import type { ActorMeter, ClaimReason } from '../meter.ts';
import { readForBatch } from './batch-reads.ts';
import { BrokenChain } from './broken-chain.ts';
import type { CommitListener } from './commit-listener.ts';
import { CommittedLedger, type WriteResult } from './committed-ledger.ts';
import { BatchFailed, type CommandResult, type DecidedBatch, decideBatch } from './decide-batch.ts';
import type { SigningKeys } from './signing-keys.ts';
import type { SavingParts } from './snapshot-saving.ts';

export interface LedgerActorParts extends SavingParts {
  readonly keys: SigningKeys;
  readonly authority: () => AuthoritySigner;
  readonly clock: Clock;
  readonly random: (bytes: number) => Uint8Array;
  readonly meter: ActorMeter;
  readonly batches: BatchWindow;
  readonly deadlines: DeadlineWatch;
  readonly commitListener?: CommitListener;
  /** For the commands that wait for one ledger. The default if left out. */
  readonly queueLimits?: MailboxLimits;
  /** Whether this node's clock is right, so that it may decide and date events. true if left out. */
  readonly isClockRight?: () => boolean;
  /** Whether rows are parsed before they are written: on nodes that run commands of others. Default: false. */
  readonly checksRows?: boolean;
}

/**
 * One ledger in memory. It assigns seq, created_at and hash, and writes in batches: the commands that arrive during a
 * write are the next batch.
 *
 * Invariants:
 * - One write is in flight.
 * - A command is answered as written only after the store has acknowledged it, and refused because of the ledger's
 *   state only after the store has confirmed that claim and head still stand.
 * - An unexpected error stops the actor for good. The next command builds a new one from the log.
 */
export class LedgerActor {
  readonly ledgerId: string;
  readonly #parts: LedgerActorParts;
  readonly #queue: CommandQueue;
  readonly #backoff = new FenceBackoff();
  readonly #ledger: CommittedLedger;
  /** The commands being worked on, and the decided batch that was sent to the store. */
  #batch: PendingCommand[] = [];
  #sent: DecidedBatch | null = null;
  #delay: BatchDelay | null = null;
  /** Callers of readBarrier() that wait for the running batch. */
  readonly #barriers: PromiseWithResolvers<number>[] = [];
  /** null while the actor is idle. */
  #work: Promise<void> | null = null;
  #stopped = false;
  /** Set by close(). New commands for the shard wait until it has ended. */
  #isClosing = false;
  #lastUsed: number;

  constructor(ledgerId: string, parts: LedgerActorParts) {
    this.ledgerId = ledgerId;
    this.#parts = parts;
    this.#queue = new CommandQueue(parts.clock, parts.queueLimits ?? mailboxLimits);
    this.#ledger = new CommittedLedger(ledgerId, parts);
    this.#lastUsed = parts.clock.now();
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  submit(command: Command): Promise<CommandOutcome> {
    if (this.#stopped) return Promise.reject(reloading());
    return this.#queue.submit(command, this.#wake);
  }

  /**
   * Resolves with the seq of the ledger's newest event (-1: none) once every event up to it has its projections, and no
   * write that any node began before can still land. Costs a read if this node wrote last, else a claim.
   */
  readBarrier(): Promise<number> {
    if (this.#stopped) return Promise.reject(reloading());
    const barrier = Promise.withResolvers<number>();
    this.#barriers.push(barrier);
    this.#wake();
    return barrier.promise;
  }

  readonly #wake = (): void => {
    this.#work ??= this.#run();
    if (this.#mayStart()) this.#delay?.end();
  };

  /** Removes the actor from memory if it has been idle since `before`, ms since 1970. Returns whether it did. */
  passivate(before: number): boolean {
    // A clock that was set back must not keep the actor until it has caught up.
    this.#lastUsed = Math.min(this.#lastUsed, this.#parts.clock.now());
    if (this.#work !== null || this.#lastUsed > before) return false;
    void this.#leave();
    return true;
  }

  /**
   * Removes the actor from memory once every submitted command is answered. Commands may wait for the end of a
   * hand-over, so it waits for saves of snapshots for a time only, and those that have not begun by then are left out.
   */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#delay?.end();
    while (this.#work !== null) await this.#work;
    const { clock } = this.#parts;
    const timeout = Promise.withResolvers<void>();
    const cancelTimer = clock.after(snapshotsLeavingMaxMs, timeout.resolve);
    await Promise.race([this.#leave(clock.now() + snapshotsLeavingMaxMs), timeout.promise]);
    cancelTimer();
  }

  async #leave(saveBefore?: number): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await this.#ledger.saveWhenLeaving(saveBefore);
  }

  async #run(): Promise<void> {
    // Commands that arrive in the same iteration of the event loop join the first batch.
    await Promise.resolve();
    const { deadlines, batches } = this.#parts;
    const stopWatching = deadlines.begin(() => this.#lookAtDeadlines());
    while ((this.#queue.size > 0 || this.#barriers.length > 0) && !this.#stopped) {
      this.#delay = this.#mayStart() ? null : batches.delay();
      if (this.#delay !== null) await this.#delay.over;
      this.#batch = this.#queue.take(batches.maxEvents, batches.maxBytes);
      batches.begin();
      try {
        await this.#writeAll();
      } catch (error) {
        this.#stop(error);
      } finally {
        this.#batch = [];
        batches.end();
      }
      if (this.#barriers.length > 0) await this.#answerBarriers();
    }
    stopWatching();
    this.#lastUsed = this.#parts.clock.now();
    this.#work = null;
  }

  /** Whether the next batch is full, or a caller of close() or readBarrier() waits for its end. */
  #mayStart(): boolean {
    const { maxEvents, maxBytes } = this.#parts.batches;
    return this.#isClosing || this.#barriers.length > 0 || this.#queue.holds(maxEvents, maxBytes);
  }

  /** A barrier that fails does not fail the commands: they find out by their own claim. */
  async #answerBarriers(): Promise<void> {
    const barriers = this.#barriers.splice(0);
    try {
      if (this.#stopped) throw reloading();
      const seq = await this.#ledger.readBarrier();
      for (const { resolve } of barriers) resolve(seq);
    } catch (error) {
      for (const { reject } of barriers) reject(error);
    }
  }

  async #writeAll(): Promise<void> {
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
      });
      // No await from here to the write: a command whose deadline has passed is certain not to be written.
      if (!this.#dropLate()) break;
      this.#checkClock();
      const context = { reads, authority: authority(), random };
      const decided = decideBatch(this.#ledger.state, this.#batch, context);
      for (const result of decided.results) if (result.kind === 'replayed') replays.push(this.#replay(result));
      const toAnswer = decided.results.filter(({ kind }) => kind !== 'replayed').map(({ pending }) => pending);
      this.#batch = [...toAnswer, ...decided.deferred];
      const written = await this.#write(claim, decided);
      if (held === null) this.#backoff.batchTook(clock.now() - began);
      if (written === 'stands') {
        this.#backoff.stood();
        if (this.#batch.length > 0) this.#parts.batches.countConfirmed();
        if (decided.entries.length > 0) this.#parts.commitListener?.committed(this.ledgerId, decided.entries);
        this.#answer(decided);
        this.#batch = [...decided.deferred];
        continue;
      }
      if (written === 'fenced') {
        meter.fenced();
        const [byte = 0] = random(1);
        const waitMs = this.#backoff.fenced(this.#ledger.state.seq, byte / 256);
        this.#ledger.forget();
        reason = 'fenced';
        if (waitMs > 0) await sleep(clock, waitMs);
      }
    }
    await Promise.all(replays);
  }

  /** Throws if this node's clock is off, which stops the actor. */
  #checkClock(): void {
    if (this.#parts.isClockRight?.() === false) throw clockIsOff();
  }

  async #activate(reason: ClaimReason): Promise<Claim> {
    const claim = await this.#ledger.activate(reason);
    this.#backoff.claimed(this.#ledger.state.seq);
    this.#parts.commitListener?.claimed(this.ledgerId);
    return claim;
  }

  /** Refuses commands whose deadline has passed. Returns whether any is left. */
  #dropLate(): boolean {
    this.#batch = this.#queue.inTime(this.#batch);
    return this.#batch.length > 0;
  }

  /** A batch of refusals alone only has the store confirm the state that they rest on. */
  async #write(claim: Claim, decided: DecidedBatch): Promise<WriteResult> {
    if (this.#batch.length === 0) return 'stands';
    if (decided.entries.length === 0) return this.#ledger.confirm(claim);
    const { commitListener } = this.#parts;
    this.#sent = decided;
    commitListener?.writing(this.ledgerId, decided.entries[0]?.seq ?? 0);
    let written: WriteResult | null = null;
    try {
      written = await this.#ledger.write(claim, decided);
      return written;
    } finally {
      this.#sent = null;
      commitListener?.settled(this.ledgerId);
      if (written === null) commitListener?.batchInDoubt(this.ledgerId, decided.entries);
    }
  }

  /** Answers a batch that stands, before anything else may fail. */
  #answer(decided: DecidedBatch): void {
    for (const result of decided.results) {
      if (result.kind === 'replayed') continue;
      this.#parts.meter.answered(result.kind);
      if (result.kind === 'written') result.pending.resolve({ event: result.event, replayed: false });
      else this.#queue.refuse(result.pending, result.error);
    }
    this.#ledger.tidy(decided);
  }

  /** The event is in the log for good: nothing has to be confirmed. */
  async #replay(result: Extract<CommandResult, { kind: 'replayed' }>): Promise<void> {
    const { store, meter } = this.#parts;
    meter.answered('replayed');
    try {
      const [entry] = await store.read(this.ledgerId, result.seq, 1);
      if (entry?.seq !== result.seq) throw new Error(`ledger ${this.ledgerId}: seq ${result.seq} is missing`);
      result.pending.resolve({ event: parseRow(entry.row), replayed: true });
    } catch (error) {
      const refusal = error instanceof LedgerError ? error : damagedReplay(this.ledgerId, result.seq, error);
      this.#queue.refuse(result.pending, refusal);
    }
  }

  #lookAtDeadlines(): void {
    this.#queue.refuseDue(this.#batch, (pending) => (this.#isAtStore(pending) ? outcomeUnknown() : timeIsUp()));
  }

  #isAtStore(pending: PendingCommand): boolean {
    return this.#sent?.results.some((result) => result.pending === pending && result.kind === 'written') === true;
  }

  #stop(cause: unknown): void {
    this.#stopped = true;
    if (cause instanceof BrokenChain) this.#parts.meter.damaged();
    for (const pending of this.#batch) {
      if (cause instanceof LedgerError) this.#queue.refuse(pending, cause);
      else if (cause instanceof BatchFailed && cause.pending !== pending) this.#queue.refuse(pending, reloading(cause));
      else this.#queue.refuse(pending, somethingWrong(cause));
    }
    this.#queue.refuseAll(() => reloading(cause));
  }
}
