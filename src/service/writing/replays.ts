import type { Directory } from '../../actors/directory.ts';
import type { CommandOutcome } from '../../actors/outcome.ts';
import { damagedReplay } from '../../actors/refusals.ts';
import type { Command } from '../../domain/command.ts';
import { LedgerError } from '../../domain/errors.ts';
import type { CommandKey } from '../../domain/event.ts';
import { parseRow } from '../../domain/row.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { Call } from '../call.ts';
import { callerOf } from '../call-caller.ts';
import { demandEntitySignature } from '../identity/signing.ts';

/** Errors after which the call may have been carried out. */
const mayBeWritten: ReadonlySet<string> = new Set(['outcome_unknown', 'idempotency_in_progress', 'internal']);

/**
 * First answers of calls that wrote to a ledger. The ledger's actor finds a command that was written before; this is for calls that are refused
 * before they get there: a retry needs a valid credential, but not that its key or its grant still stands (decisions.md, section 1).
 */
export class Replays {
  readonly #store: LedgerStore;

  constructor(store: LedgerStore) {
    this.#store = store;
  }

  /** What the call's idempotency key wrote on that ledger before; null if nothing. */
  async find(call: Call, ledgerOf: () => Promise<string | null>): Promise<CommandOutcome | null> {
    const mark = call.command;
    if (mark === null) return null;
    const ledgerId = await ledgerOf();
    if (ledgerId === null) return null;
    return this.#written(ledgerId, mark);
  }

  /**
   * The outcome of a command. Where one of the same name is running, that may be a replay too: what was written before under the name is
   * then the answer to both.
   */
  carryOut(directory: Directory, command: Command): Promise<CommandOutcome> {
    return directory.submit(command).catch(async (error: unknown) => {
      if (!(error instanceof LedgerError) || error.code !== 'idempotency_in_progress') throw error;
      for (const mark of command.marks) {
        const first = await this.#written(command.ledgerId, mark).catch(() => null);
        if (first !== null) return first;
      }
      throw error;
    });
  }

  async #written(ledgerId: string, mark: CommandKey): Promise<CommandOutcome | null> {
    const found = (await this.#store.findCommands(ledgerId, [mark])).get(mark.id);
    if (found === undefined || found.fingerprint !== mark.fingerprint) return null;
    const [entry] = await this.#store.read(ledgerId, found.seq, 1);
    if (entry?.seq !== found.seq) return null;
    try {
      return { event: parseRow(entry.row), replayed: true };
    } catch (error) {
      throw error instanceof LedgerError ? error : damagedReplay(ledgerId, found.seq, error);
    }
  }

  /** The outcome of `run`, which rejects and never throws, or, where it is refused, the first outcome of the same call. */
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

  /** What cannot be looked for does not make an uncertain outcome certain: a store that is away says `unavailable`, that nothing was written. */
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
   * The same for a call that is signed as an event. A signature that is an entity's only credential has to verify for a replay too, so what
   * is refused before the ledger's actor stays refused. Throws `signature_required`.
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
