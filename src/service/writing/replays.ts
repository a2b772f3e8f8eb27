import type { CommandOutcome } from '../../actors/inbox/outcome.ts';
import { damagedReplay } from '../../actors/inbox/refusals.ts';
import type { Directory } from '../../actors/routing/directory.ts';
import { LedgerError } from '../../domain/errors.ts';
import type { CommandKey } from '../../domain/event/event.ts';
import { parseRow } from '../../domain/event/row.ts';
import type { Command } from '../../domain/ledger/command.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { demandEntitySignature } from '../actors/signing.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/call-caller.ts';

/** Errors after which the call may have been written. */
const mayBeWritten: ReadonlySet<string> = new Set(['outcome_unknown', 'idempotency_in_progress', 'internal']);

/**
 * First answers of calls that wrote to a ledger. The ledger's actor recognizes a command that was written before. This
 * class serves calls that are refused before they get there: a retry needs a valid credential, but its signing key or
 * grant may have ended since.
 */
export class Replays {
  readonly #store: LedgerStore;

  constructor(store: LedgerStore) {
    this.#store = store;
  }

  /** The event that the call's idempotency key wrote to that ledger before. null if there is none. */
  async find(call: Call, ledgerOf: () => Promise<string | null>): Promise<CommandOutcome | null> {
    const key = call.command;
    if (key === null) return null;
    const ledgerId = await ledgerOf();
    if (ledgerId === null) return null;
    return this.#written(ledgerId, key);
  }

  /**
   * Runs a command. If another command with the same key is in flight, the event that was written with the key, if
   * there is one, is the outcome of both.
   */
  carryOut(directory: Directory, command: Command): Promise<CommandOutcome> {
    return directory.submit(command).catch(async (error: unknown) => {
      if (!(error instanceof LedgerError) || error.code !== 'idempotency_in_progress') throw error;
      for (const key of command.commandKeys) {
        const first = await this.#written(command.ledgerId, key).catch(() => null);
        if (first !== null) return first;
      }
      throw error;
    });
  }

  async #written(ledgerId: string, key: CommandKey): Promise<CommandOutcome | null> {
    const found = (await this.#store.findCommands(ledgerId, [key])).get(key.id);
    if (found === undefined || found.fingerprint !== key.fingerprint) return null;
    const [entry] = await this.#store.read(ledgerId, found.seq, 1);
    if (entry?.seq !== found.seq) return null;
    try {
      return { event: parseRow(entry.row), replayed: true };
    } catch (error) {
      throw error instanceof LedgerError ? error : damagedReplay(ledgerId, found.seq, error);
    }
  }

  /**
   * Returns the outcome of `run`, which must reject instead of throwing. If `run` is refused, returns the first outcome
   * of the same call, if there is one.
   */
  orElse(
    call: Call,
    ledgerOf: () => Promise<string | null>,
    run: () => Promise<CommandOutcome>,
  ): Promise<CommandOutcome> {
    return run().catch(async (error: unknown) => {
      const first = error instanceof LedgerError ? await this.#findAfter(error, call, ledgerOf) : null;
      if (first === null) throw error;
      return first;
    });
  }

  /**
   * If the look-up itself fails, an uncertain outcome stays uncertain: the look-up's `unavailable` would mean that
   * nothing was written.
   */
  async #findAfter(
    error: LedgerError,
    call: Call,
    ledgerOf: () => Promise<string | null>,
  ): Promise<CommandOutcome | null> {
    try {
      return await this.find(call, ledgerOf);
    } catch (unread) {
      throw mayBeWritten.has(error.code) ? error : unread;
    }
  }

  /**
   * The same for a call that is signed as an event. If an entity's signature is its only credential, it must verify for
   * a replay too: what is refused before the ledger's actor stays refused. Throws `signature_required`.
   */
  orElseSigned(
    call: Call,
    ledgerOf: () => Promise<string | null>,
    run: () => Promise<CommandOutcome>,
  ): Promise<CommandOutcome> {
    demandEntitySignature(call);
    return callerOf(call).mustSign ? run() : this.orElse(call, ledgerOf, run);
  }
}
