import type { Command } from '../domain/command.ts';
import { LedgerError } from '../domain/errors.ts';
import type { Clock } from './clock.ts';
import { InFlightCommands } from './in-flight-commands.ts';
import { Lanes } from './lanes.ts';
import { Mailbox, type MailboxLimits } from './mailbox.ts';
import type { CommandOutcome } from './outcome.ts';
import { PendingCommand } from './pending-command.ts';
import { isRetryable, timeIsUp } from './refusals.ts';

/**
 * What comes for one ledger's actor: commands wait here, those of a lane in its order and none beside its twin, until the actor takes them; and
 * here they are refused.
 *
 * Invariant: behind a command that is to be sent again, nothing of its lane enters, and nothing of it is left in a batch that was looked through.
 */
export class CommandQueue {
  readonly #clock: Clock;
  readonly #mailbox: Mailbox;
  readonly #lanes = new Lanes();
  readonly #twins = new InFlightCommands();

  constructor(clock: Clock, limits: MailboxLimits) {
    this.#clock = clock;
    this.#mailbox = new Mailbox(limits);
  }

  /** Letters that wait. */
  get size(): number {
    return this.#mailbox.size;
  }

  /** Takes a command in: its outcome, or the LedgerError that it is refused with. Calls `wake` once its letter waits. */
  submit(command: Command, wake: () => void): Promise<CommandOutcome> {
    const refusal = this.#lanes.enter(command.lane);
    if (refusal !== null) return Promise.reject(refusal);
    const twin = this.#twins.find(command);
    if (twin !== null) {
      if (!(twin instanceof LedgerError)) return twin;
      this.#noteFailure(command, twin);
      return Promise.reject(twin);
    }
    const outcome = this.#enqueue(command, wake);
    this.#twins.remember(command, outcome);
    return outcome;
  }

  #enqueue(command: Command, wake: () => void): Promise<CommandOutcome> {
    return new Promise((resolve, reject) => {
      const letter = new PendingCommand(command, resolve, reject);
      try {
        this.#mailbox.push(letter);
      } catch (full) {
        this.#noteFailure(command, full);
        throw full;
      }
      wake();
    });
  }

  /** Whether so many letters wait, or so many bytes. */
  holds(count: number, bytes: number): boolean {
    return this.#mailbox.holds(count, bytes);
  }

  /** The next letters: at most `count` and `bytes`, but at least one if there is one. */
  take(count: number, bytes: number): PendingCommand[] {
    return this.#mailbox.take(count, bytes);
  }

  /**
   * Of letters that are not sent, those that may still be: commands whose time is up, and those behind them in their lane, are refused, certain
   * not to be written.
   */
  inTime(letters: PendingCommand[]): PendingCommand[] {
    const now = this.#clock.now();
    const isLate = (letter: PendingCommand) =>
      letter.answered || letter.command.deadline <= now || this.#lanes.isBroken(letter.command.lane);
    if (!letters.some(isLate)) return letters;
    const inTime: PendingCommand[] = [];
    for (const letter of letters) {
      if (!isLate(letter)) inTime.push(letter);
      else if (!letter.answered) this.refuse(letter, timeIsUp());
    }
    return inTime;
  }

  /** Refuses those of `taken`, and of those that wait, whose time is up. `errorFor` says what is certain of a letter that was taken. */
  refuseDue(taken: readonly PendingCommand[], errorFor: (letter: PendingCommand) => LedgerError): void {
    const now = this.#clock.now();
    const isDue = (letter: PendingCommand) => !letter.answered && letter.command.deadline <= now;
    for (const letter of taken) if (isDue(letter)) this.refuse(letter, errorFor(letter));
    for (const letter of this.#mailbox.waiting()) if (isDue(letter)) this.refuse(letter, timeIsUp());
  }

  refuse(letter: PendingCommand, error: LedgerError): void {
    this.#noteFailure(letter.command, error);
    letter.reject(error);
  }

  /** Refuses all that wait. */
  refuseAll(errorFor: () => LedgerError): void {
    for (const letter of this.#mailbox.drain()) this.refuse(letter, errorFor());
  }

  #noteFailure(command: Command, error: unknown): void {
    if (!(error instanceof LedgerError) || isRetryable(error)) this.#lanes.breakOff(command.lane);
  }
}
