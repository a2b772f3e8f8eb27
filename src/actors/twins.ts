import type { Command } from '../domain/command.ts';
import { LedgerError } from '../domain/errors.ts';
import type { Outcome } from './outcome.ts';

interface Running {
  readonly fingerprint: string;
  readonly outcome: Promise<Outcome>;
}

/** The marked commands that wait or are in flight in one ledger's actor, so that none of them is taken in twice. */
export class Twins {
  readonly #running = new Map<string, Running>();

  /** What a command gets whose mark is running already: the twin's outcome if it was sent before, else a refusal. null: it has no twin. */
  find(command: Command): Promise<Outcome> | LedgerError | null {
    for (const mark of command.marks) {
      const twin = this.#running.get(mark.id);
      if (twin === undefined) continue;
      if (twin.fingerprint !== mark.fingerprint) return keyReused();
      return command.resubmitted === true ? twin.outcome : inProgress();
    }
    return null;
  }

  /** Notes a command until its outcome is there. */
  remember(command: Command, outcome: Promise<Outcome>): void {
    if (command.marks.length === 0) return;
    for (const mark of command.marks) this.#running.set(mark.id, { fingerprint: mark.fingerprint, outcome });
    const forget = () => {
      for (const mark of command.marks) this.#running.delete(mark.id);
    };
    outcome.then(forget, forget);
  }
}

function inProgress(): LedgerError {
  return new LedgerError(
    'idempotency_in_progress',
    'The first call with this Idempotency-Key is still running: ask again in a moment.',
  );
}

/** The same name for another call (decisions.md, section 1). */
export function keyReused(): LedgerError {
  return new LedgerError(
    'idempotency_key_reused',
    'This Idempotency-Key was used for another call: use a new key for each new call.',
  );
}
