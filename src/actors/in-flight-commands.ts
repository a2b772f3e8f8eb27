import type { Command } from '../domain/command.ts';
import { LedgerError } from '../domain/errors.ts';
import { Slab } from '../domain/slab.ts';
import type { CommandOutcome } from './outcome.ts';

interface Running {
  readonly fingerprint: string;
  readonly outcome: Promise<CommandOutcome>;
}

/** The marked commands that wait or are in flight in one ledger's actor, so that none of them is taken in twice. */
export class InFlightCommands {
  readonly #running = new Slab<Running>();
  /** By the id of a mark. */
  readonly #slots = new Map<string, number>();

  /**
   * What a command gets whose mark is running already. Sent before, the same and in no lane: the twin's outcome. Else a refusal: in a lane what is
   * behind it must not be written before it is certain. null: it has no twin. That its key was used for another call is told only to one that
   * stands nowhere yet: what was sent before may be in the log already, and the other call, which only waits here, be the one that is refused.
   */
  find(command: Command): Promise<CommandOutcome> | LedgerError | null {
    for (const mark of command.marks) {
      const slot = this.#slots.get(mark.id);
      const twin = slot === undefined ? undefined : this.#running.get(slot);
      if (twin === undefined) continue;
      const isSame = twin.fingerprint === mark.fingerprint;
      if (command.resubmitted !== true) return isSame ? inProgress() : keyReused();
      return isSame && !command.lane ? twin.outcome : inProgress();
    }
    return null;
  }

  /** Notes a command until its outcome is there. */
  remember(command: Command, outcome: Promise<CommandOutcome>): void {
    if (command.marks.length === 0) return;
    const slots = command.marks.map(({ id, fingerprint }) => {
      const slot = this.#running.add({ fingerprint, outcome });
      this.#slots.set(id, slot);
      return slot;
    });
    const forget = () => {
      for (const { id } of command.marks) this.#slots.delete(id);
      for (const slot of slots) this.#running.remove(slot);
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
