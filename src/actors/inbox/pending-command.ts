import type { Command } from '../../domain/ledger/command.ts';
import { eventOverheadBytes } from '../bounds.ts';
import type { CommandOutcome } from './outcome.ts';

/**
 * A command with its waiting caller.
 *
 * Invariant: a command whose deadline has passed is answered and never decided afterwards, even if the clock is set
 * back.
 */
export class PendingCommand {
  readonly command: Command;
  /** Estimated size of its events in a batch, bytes. */
  readonly bytes: number;
  readonly #resolve: (outcome: CommandOutcome) => void;
  readonly #reject: (error: Error) => void;
  #answered = false;

  constructor(command: Command, resolve: (outcome: CommandOutcome) => void, reject: (error: Error) => void) {
    this.command = command;
    this.bytes = commandBytes(command);
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get answered(): boolean {
    return this.#answered;
  }

  resolve(outcome: CommandOutcome): void {
    this.#answered = true;
    this.#resolve(outcome);
  }

  reject(error: Error): void {
    this.#answered = true;
    this.#reject(error);
  }
}

/** The texts that the caller determines, in UTF-8, and an estimate of the rest of its event. */
function commandBytes(command: Command): number {
  const texts: string[] = [];
  switch (command.kind) {
    case 'append_event':
      texts.push(command.payload);
      break;
    case 'grant':
      texts.push(command.requested, command.permissions);
      break;
    case 'open_ledger':
      texts.push(command.registeredPayload ?? '');
      break;
  }
  const signed = command.signature?.signedForm;
  if (signed !== undefined && signed !== texts[0]) texts.push(signed);
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), eventOverheadBytes);
}
