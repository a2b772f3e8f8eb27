import type { Outcome } from '../actors/outcome.ts';
import { LedgerError } from '../domain/errors.ts';
import { parseRow } from '../domain/row.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { Call } from './call.ts';

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
  async find(call: Call, ledgerOf: () => Promise<string | null>): Promise<Outcome | null> {
    const mark = call.command;
    if (mark === null) return null;
    const ledgerId = await ledgerOf();
    if (ledgerId === null) return null;
    const found = (await this.#store.findCommands(ledgerId, [mark.id])).get(mark.id);
    if (found === undefined || found.fingerprint !== mark.fingerprint) return null;
    const [entry] = await this.#store.read(ledgerId, found.seq, 1);
    return entry?.seq === found.seq ? { event: parseRow(entry.row), replayed: true } : null;
  }

  /** The outcome of `run`, or, where it is refused, the first outcome of the same call. */
  async orElse(call: Call, ledgerOf: () => Promise<string | null>, run: () => Promise<Outcome>): Promise<Outcome> {
    try {
      return await run();
    } catch (error) {
      const first = error instanceof LedgerError ? await this.find(call, ledgerOf) : null;
      if (first === null) throw error;
      return first;
    }
  }
}
