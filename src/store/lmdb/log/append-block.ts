import type { Projection } from '../../../domain/event/projection.ts';
import type { LedgerEntry } from '../../ledger-store.ts';
import { commandKey, listPrefix, orderKey, scopePrefix, seqKey, textKey, writeSeq } from '../keys.ts';
import { type BytesTable, NOTHING, type Tables } from '../tables.ts';
import { formatCommandKey } from './stored-values.ts';

/**
 * Puts the rows of an append and their projections, inside the write block that is conditional on the head's version.
 * The entries must have been checked: nothing here may throw, because a block that throws is written in part. LMDB
 * copies a key when it is put, so one key buffer serves for all rows.
 */
export function putEntries(
  tables: Tables,
  commandKeys: BytesTable,
  ledger: Buffer,
  entries: readonly LedgerEntry[],
): void {
  const rowKey = seqKey(ledger, 0);
  const scopeKeys = new Map<string, Buffer>();
  const put = (projection: Projection, seq: number): void => {
    switch (projection.kind) {
      case 'scope': {
        const { scope } = projection;
        const key = scopeKeys.get(scope) ?? seqKey(scopePrefix(ledger, scope), 0);
        scopeKeys.set(scope, key);
        writeSeq(key, seq);
        tables.scopes.put(key, NOTHING);
        return;
      }
      case 'command': {
        const { id, fingerprint, permanent } = projection.command;
        const table = permanent ? tables.permanentCommands : commandKeys;
        table.put(commandKey(ledger, id), formatCommandKey({ seq, fingerprint }));
        return;
      }
      case 'line':
        tables.lines.put(orderKey(listPrefix(projection.list), projection.order), projection.value);
        return;
      case 'cell': {
        // Compared with the committed cell, which is safe: a cell belongs to one ledger, and the block is written only
        // if that ledger has not changed meanwhile.
        const key = textKey(projection.key);
        const stored = tables.cells.getEntry(key)?.version ?? -1;
        if (stored <= seq) tables.cells.put(key, projection.value, seq);
        return;
      }
    }
  };
  for (const { seq, row, projections } of entries) {
    writeSeq(rowKey, seq);
    tables.events.put(rowKey, row);
    for (const projection of projections) put(projection, seq);
  }
}
