import type { Finding } from '../../src/maintenance/scrub/finding.ts';

/** Returns the Cassandra table and the key of the row that a finding is about. */
export function placeIn(finding: Finding): { readonly table: string; readonly key: string } {
  const { table, key, type, ledgerId, seq } = finding;
  if (table !== undefined && key !== undefined) return { table, key };
  if (type === 'invalid_authority_key') return { table: 'record', key: 'kind=authority, id=keys' };
  if (ledgerId === null) return { table: 'cell and line', key: 'as named' };
  const bySeq = seq === null ? '' : `, seq=${seq}`;
  const isBeside = type === 'projection_extra' || type === 'projection_missing' || type === 'projection_wrong';
  return { table: isBeside ? 'cell, line and command' : 'ledger_event', key: `ledger_id=${ledgerId}${bySeq}` };
}

const isolate =
  'let nobody write to the ledger, keep a snapshot as evidence, restore the ledger elsewhere from a backup and compare';

/** Returns what an operator should do about a finding: a clause to print. */
export function remedyOf({ type }: Finding): string {
  switch (type) {
    case 'projection_missing':
      return 'run again with --finish, which writes it from the log';
    case 'projection_wrong':
    case 'projection_extra':
      return 'find out who wrote it, delete the row, and run again with --finish';
    case 'wrong_snapshot':
      return 'delete the row: nodes rebuild the state from the log; find out who wrote it';
    case 'damaged_row':
      return 'restore the row from a backup; a hint, or a row beside a log, may be deleted instead: nodes and --finish write it again';
    case 'not_permitted':
    case 'closed':
    case 'dated_backwards':
    case 'dated_ahead':
    case 'contradiction':
      return `no node of this service has decided it so: ${isolate}`;
    case 'invalid_authority_key':
      return 'check seals under a trust anchor that was kept elsewhere (--authority), and find out who changed the record';
    case 'unchecked_ledger':
      return 'mend the other findings of the ledger first, then run again';
    default:
      return isolate;
  }
}
