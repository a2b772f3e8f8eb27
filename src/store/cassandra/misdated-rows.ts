import type { DamagedRow, NamesBesideLog } from '../store-inspection.ts';
import { commandWindows, keyText, permanentSlots } from './keys.ts';
import { type CqlSession, type Row, textOf } from './session/session.ts';
import { walkRows } from './token-walk.ts';
import { exactTime, timesOf, wrongTimes } from './writetimes.ts';

const cellColumns = ['version', 'value'];
const snapshotColumns = ['seq', 'hash', 'state', 'saved_at'];
const commandColumns = ['seq', 'fingerprint'];
const CELL = `SELECT version, ${timesOf(cellColumns)} FROM cell WHERE key = ?`;
const LINES = `SELECT line_order, ${timesOf(['value'])} FROM line WHERE list = ? AND line_order > ? LIMIT ?`;
const SNAPSHOTS = `SELECT fold_version, seq, ${timesOf(snapshotColumns)} FROM snapshot WHERE owner = ?`;
const COMMANDS = `SELECT id, ${timesOf(commandColumns)} FROM command WHERE ledger_id = ? AND slot = ? AND id > ? LIMIT ?`;

/** As StoreInspection.misdatedRows. Takes the time after each read: what is written during the walk is not ahead. */
export async function* misdatedRows(
  session: CqlSession,
  { ledgerId, cells, lists, isOwnLine, owners }: NamesBesideLog,
  now: () => number,
): AsyncGenerator<DamagedRow> {
  function* wrong(table: string, row: Row, columns: readonly string[], key: string): Generator<DamagedRow> {
    const detail = wrongTimes(row, columns, now(), exactTime(table, row));
    if (detail !== null) yield { type: 'wrong_writetime', table, key, ledgerId, seq: null, detail };
  }
  for (const key of cells)
    for (const row of await session.read({ cql: CELL, params: [keyText(key)] }))
      yield* wrong('cell', row, cellColumns, `key=${key}`);
  for (const list of lists)
    for await (const row of walkRows(session, LINES, [keyText(list)], ['line_order'], [''])) {
      const order = textOf(row, 'line_order') ?? '';
      if (isOwnLine(list, order)) yield* wrong('line', row, ['value'], `list=${list}, line_order=${order}`);
    }
  for (const owner of owners)
    for (const row of await session.read({ cql: SNAPSHOTS, params: [keyText(owner)] }))
      yield* wrong('snapshot', row, snapshotColumns, `owner=${owner}, fold_version=${String(row.fold_version)}`);
  const permanent = Array.from({ length: permanentSlots }, (_, at) => -1 - at);
  for (const slot of [...commandWindows(now()), ...permanent])
    for await (const row of walkRows(session, COMMANDS, [keyText(ledgerId), slot], ['id'], ['']))
      yield* wrong('command', row, commandColumns, `ledger_id=${ledgerId}, slot=${slot}, id=${textOf(row, 'id')}`);
}
