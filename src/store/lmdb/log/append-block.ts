import type { Projection } from '../../../domain/event/projection.ts';
import type { LedgerEntry } from '../../ledger-store.ts';
import { commandKey, listPrefix, orderKey, scopePrefix, seqKey, textKey, writeSeq } from '../keys.ts';
import { type BytesTable, NOTHING, type Tables } from '../tables.ts';
import { formatCommand } from './command-value.ts';

/**
 * Puts the rows of an append and their projections. It runs inside the write block that is conditional on the head's
 * version. The entries must have been checked: nothing here may throw, because a block that throws is written in part.
 *
 * LMDB copies a key when it is put, so one key buffer serves for all rows.
 */
export function putEntries(
  tables: Tables,
  commands: BytesTable,
  ledger: Buffer,
  entries: readonly LedgerEntry[],
): void {
  const rowKey = seqKey(ledger, 0);
  const scopeKeys = new Map<string, Buffer>();
  for (const entry of entries) {
    writeSeq(rowKey, entry.seq);
    tables.events.put(rowKey, entry.row);
    for (const projection of entry.projections) {
      if (projection.kind === 'scope') putScope(tables, scopeKeys, ledger, projection.scope, entry.seq);
      else putProjection(tables, commands, ledger, entry.seq, projection);
    }
  }
  putCells(tables, entries);
}

function putScope(tables: Tables, keys: Map<string, Buffer>, ledger: Buffer, scope: string, seq: number): void {
  let key = keys.get(scope);
  if (key === undefined) {
    key = seqKey(scopePrefix(ledger, scope), 0);
    keys.set(scope, key);
  }
  writeSeq(key, seq);
  tables.scopes.put(key, NOTHING);
}

function putProjection(
  tables: Tables,
  commands: BytesTable,
  ledger: Buffer,
  seq: number,
  projection: Exclude<Projection, { kind: 'scope' }>,
): void {
  switch (projection.kind) {
    case 'command': {
      const { id, fingerprint, permanent } = projection.command;
      const table = permanent ? tables.permanentCommands : commands;
      table.put(commandKey(ledger, id), formatCommand({ seq, fingerprint }));
      return;
    }
    case 'line':
      tables.lines.put(orderKey(listPrefix(projection.list), projection.order), projection.value);
      return;
    case 'cell':
      // putCells writes the cells.
      return;
  }
}

/**
 * Puts cells that are newer than the stored ones. It compares with the committed cells, which is safe: a cell belongs
 * to one ledger, and the block is written only if that ledger has not changed meanwhile.
 */
function putCells(tables: Tables, entries: readonly LedgerEntry[]): void {
  for (const entry of entries)
    for (const projection of entry.projections) {
      if (projection.kind !== 'cell') continue;
      const key = textKey(projection.key);
      const stored = tables.cells.getEntry(key)?.version ?? -1;
      if (stored <= entry.seq) tables.cells.put(key, projection.value, entry.seq);
    }
}
