import type { Projection } from '../../../src/domain/event/projection.ts';
import type { LedgerEntry } from '../../../src/store/ledger-store.ts';
import type { MemoryLedger, MemoryLedgerData } from './ledger-data.ts';

/**
 * Throws TypeError if a projection violates the port's contract: another value under an existing order of a list, or
 * text that is not well-formed Unicode. Real stores do not check this. This store does, so that tests find the mistake.
 */
export function checkProjections(data: MemoryLedgerData, entries: readonly LedgerEntry[]): void {
  const lines = new Map<string, string>();
  for (const { projections } of entries)
    for (const projection of projections) {
      checkText(projection);
      if (projection.kind !== 'line') continue;
      const { list, order, value } = projection;
      const key = JSON.stringify([list, order]);
      const there = lines.get(key) ?? data.lines.get(list)?.get(order) ?? value;
      if (there !== value) throw new TypeError(`List ${list} has another line at ${order}`);
      lines.set(key, value);
    }
}

/** Writes checked entries. `now` is in milliseconds since 1970. */
export function applyEntries(
  data: MemoryLedgerData,
  ledger: MemoryLedger,
  entries: readonly LedgerEntry[],
  now: number,
): void {
  for (const { seq, hash, row, projections } of entries) {
    ledger.entries.set(seq, Object.freeze({ seq, row }));
    ledger.head = Object.freeze({ seq, hash });
    for (const projection of projections) applyProjection(data, ledger, seq, projection, now);
  }
}

function applyProjection(
  data: MemoryLedgerData,
  ledger: MemoryLedger,
  seq: number,
  projection: Projection,
  now: number,
): void {
  switch (projection.kind) {
    case 'scope':
      valueIn(ledger.scopes, projection.scope, () => new Set<number>()).add(seq);
      return;
    case 'command': {
      const { id, fingerprint, permanent } = projection.command;
      if (permanent) ledger.permanentCommands.set(id, { seq, fingerprint });
      else ledger.commands.set(id, { seq, fingerprint, at: now });
      return;
    }
    case 'cell': {
      const stored = data.cells.get(projection.key);
      if (stored === undefined || stored.version <= seq)
        data.cells.set(projection.key, Object.freeze({ version: seq, value: projection.value }));
      return;
    }
    case 'line':
      valueIn(data.lines, projection.list, () => new Map<string, string>()).set(projection.order, projection.value);
      return;
  }
}

function checkText(projection: Projection): void {
  for (const text of Object.values(projection))
    if (typeof text === 'string' && !text.isWellFormed()) throw new TypeError('A text with half a surrogate pair');
}

function valueIn<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
