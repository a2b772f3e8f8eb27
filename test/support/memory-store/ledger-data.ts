import type { Cell, FoundCommand, Head, Snapshot, StoredEntry } from '../../../src/store/ledger-store.ts';

export interface MemoryLedger {
  /** Number of claims so far. It is the fence of the newest claim. */
  claims: number;
  head: Head | null;
  /** Fence of the claim whose append is in flight. null if there is none. */
  appendUnderWay: string | null;
  readonly entries: Map<number, StoredEntry>;
  /** Seqs under each scope, ascending. */
  readonly scopes: Map<string, Set<number>>;
  readonly commands: Map<string, KeptCommand>;
  readonly permanentCommands: Map<string, FoundCommand>;
}

export interface KeptCommand extends FoundCommand {
  /** When it was appended, milliseconds since 1970. */
  readonly at: number;
}

/**
 * The data of memory stores. Several stores over one of these behave like several nodes over one database. A new store
 * over existing data behaves like a restart.
 */
export interface MemoryLedgerData {
  readonly ledgers: Map<string, MemoryLedger>;
  readonly cells: Map<string, Cell>;
  readonly lines: Map<string, Map<string, string>>;
  readonly snapshots: Map<string, Snapshot>;
}

export function emptyLedgerData(): MemoryLedgerData {
  return { ledgers: new Map(), cells: new Map(), lines: new Map(), snapshots: new Map() };
}

/** Returns a ledger's data. Adds an empty ledger if there is none. */
export function ledgerIn(data: MemoryLedgerData, ledgerId: string): MemoryLedger {
  let ledger = data.ledgers.get(ledgerId);
  if (ledger === undefined) {
    ledger = {
      claims: 0,
      head: null,
      appendUnderWay: null,
      entries: new Map(),
      scopes: new Map(),
      commands: new Map(),
      permanentCommands: new Map(),
    };
    data.ledgers.set(ledgerId, ledger);
  }
  return ledger;
}
