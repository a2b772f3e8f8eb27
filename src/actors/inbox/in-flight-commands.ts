import { LedgerError } from '../../domain/errors.ts';
import type { Command } from '../../domain/ledger/command.ts';
import { Slab } from '../../runtime/collections/slab.ts';
import type { CommandOutcome } from './outcome.ts';

interface Running {
  readonly fingerprint: string;
  readonly outcome: Promise<CommandOutcome>;
}

/** The commands with a key that wait or are being written in one ledger's actor, so that none is accepted twice. */
export class InFlightCommands {
  readonly #running = new Slab<Running>();
  readonly #slots = new Map<string, number>();

  /**
   * null: no command with the same key is in flight.
   *
   * A resubmitted command outside of a lane gets the outcome of the one in flight. Others are refused: in a lane, the
   * commands behind it must not be written before its outcome is certain. A reused key is reported only to a command
   * that was never sent before: a resubmitted one may already be in the log, and then the other call is the one to
   * refuse.
   */
  find(command: Command): Promise<CommandOutcome> | LedgerError | null {
    for (const key of command.commandKeys) {
      const slot = this.#slots.get(key.id);
      const inFlight = slot === undefined ? undefined : this.#running.get(slot);
      if (inFlight === undefined) continue;
      const isSame = inFlight.fingerprint === key.fingerprint;
      if (command.resubmitted !== true) return isSame ? inProgress() : keyReused();
      return isSame && !command.lane ? inFlight.outcome : inProgress();
    }
    return null;
  }

  remember(command: Command, outcome: Promise<CommandOutcome>): void {
    if (command.commandKeys.length === 0) return;
    const slots = command.commandKeys.map(({ id, fingerprint }) => {
      const slot = this.#running.add({ fingerprint, outcome });
      this.#slots.set(id, slot);
      return slot;
    });
    const forget = () => {
      for (const { id } of command.commandKeys) this.#slots.delete(id);
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

export function keyReused(): LedgerError {
  return new LedgerError(
    'idempotency_key_reused',
    'This Idempotency-Key was used for another call: use a new key for each new call.',
  );
}
