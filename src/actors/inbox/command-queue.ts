import { asLedgerError, isRetryable, LedgerError } from '../../domain/errors.ts';
import type { Command } from '../../domain/ledger/command.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import { InFlightCommands } from './in-flight-commands.ts';
import { Lanes } from './lanes.ts';
import { Mailbox, type MailboxLimits } from './mailbox.ts';
import type { CommandOutcome } from './outcome.ts';
import { PendingCommand } from './pending-command.ts';
import { timeIsUp } from './refusals.ts';

/**
 * The commands that wait for one ledger's actor: in the order of their lanes, and no two with the same key.
 *
 * Invariant: once a command is refused with an error that allows a retry, no later command of its lane is accepted, and
 * `inTime` removes those that were accepted before.
 */
export class CommandQueue {
  readonly #clock: Clock;
  readonly #mailbox: Mailbox;
  readonly #lanes = new Lanes();
  readonly #inFlight = new InFlightCommands();

  constructor(clock: Clock, limits: MailboxLimits) {
    this.#clock = clock;
    this.#mailbox = new Mailbox(limits);
  }

  get size(): number {
    return this.#mailbox.size;
  }

  /** Resolves with the command's outcome, or rejects with its LedgerError. Calls `wake` once the command waits. */
  submit(command: Command, wake: () => void): Promise<CommandOutcome> {
    const refusal = this.#lanes.enter(command.lane);
    if (refusal !== null) return Promise.reject(refusal);
    const inFlight = this.#inFlight.find(command);
    if (inFlight !== null) {
      if (!(inFlight instanceof LedgerError)) return inFlight;
      this.#noteFailure(command, inFlight);
      return Promise.reject(inFlight);
    }
    const outcome = this.#enqueue(command, wake);
    this.#inFlight.remember(command, outcome);
    return outcome;
  }

  #enqueue(command: Command, wake: () => void): Promise<CommandOutcome> {
    return new Promise((resolve, reject) => {
      const pending = new PendingCommand(command, resolve, reject);
      try {
        this.#mailbox.push(pending);
      } catch (full) {
        this.#noteFailure(command, full);
        throw full;
      }
      wake();
    });
  }

  holds(count: number, bytes: number): boolean {
    return this.#mailbox.holds(count, bytes);
  }

  take(count: number, bytes: number): PendingCommand[] {
    return this.#mailbox.take(count, bytes);
  }

  /**
   * The commands of an unsent batch that may still be written. Refuses late ones, and those behind them in their lane.
   */
  inTime(batch: PendingCommand[]): PendingCommand[] {
    const now = this.#clock.now();
    const isLate = (pending: PendingCommand) =>
      pending.answered || pending.command.deadline <= now || this.#lanes.isBroken(pending.command.lane);
    if (!batch.some(isLate)) return batch;
    const inTime: PendingCommand[] = [];
    for (const pending of batch) {
      if (!isLate(pending)) inTime.push(pending);
      else if (!pending.answered) this.refuse(pending, timeIsUp());
    }
    return inTime;
  }

  /** Refuses late commands of `taken` and waiting ones. `errorFor` says what is certain of a taken one. */
  refuseDue(taken: readonly PendingCommand[], errorFor: (pending: PendingCommand) => LedgerError): void {
    const now = this.#clock.now();
    const isDue = (pending: PendingCommand) => !pending.answered && pending.command.deadline <= now;
    for (const pending of taken) if (isDue(pending)) this.refuse(pending, errorFor(pending));
    for (const pending of this.#mailbox.waiting()) if (isDue(pending)) this.refuse(pending, timeIsUp());
  }

  refuse(pending: PendingCommand, error: LedgerError): void {
    this.#noteFailure(pending.command, error);
    pending.reject(error);
  }

  refuseAll(errorFor: () => LedgerError): void {
    for (const pending of this.#mailbox.drain()) this.refuse(pending, errorFor());
  }

  #noteFailure(command: Command, error: unknown): void {
    if (isRetryable(asLedgerError(error))) this.#lanes.breakOff(command.lane);
  }
}
