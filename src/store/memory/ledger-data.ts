import type { Cell, FoundCommand, Head, Snapshot, StoredEntry } from '../ledger-store.ts';

/** One ledger as the memory store keeps it. */
export interface MemoryLedger {
  /** Number of claims so far; the newest claim has it as its fence. */
  claims: number;
  head: Head | null;
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
 * What memory stores share: several stores over one of these are several nodes over one database, and a new store over
 * an old one is a restart.
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
