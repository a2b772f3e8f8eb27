import type { VerificationIssueType } from '../../client/verify/verification.ts';

/**
 * What a scrub can find wrong in a store, beside what is wrong in the chain itself.
 * - `unreadable_row`: a row of the log is no event.
 * - `wrong_head`: the ledger, or a full bucket of its log, does not end where the store says.
 * - `projection_missing`, `projection_wrong`, `projection_extra`: a projection is not what follows from the log.
 * - `invalid_authority_key`: the list of the authority's keys was not written with a key of the authority.
 * - `invalid_log_key`: the record of the log has a key that the authority has not endorsed.
 * - `damaged_row`: a row is not what the service writes.
 * - `wrong_writetime`: cells of a row have a time that the service does not give, so that later writes may be lost.
 * - `wrong_snapshot`: a snapshot is not the fold of its log.
 * - `wrong_tile`: a stored hash of a tree does not fit its place, or is not that of the events.
 * - `log_behind`: a log lacks events that were signed, or has others in their place.
 * - `broken_row`: an event that a tree or a signed head covers is missing, or has another hash or link than it should.
 * - `unchecked_ledger`: what is stored of a ledger could not be checked to its end.
 */
export type FindingType =
  | VerificationIssueType
  | 'unreadable_row'
  | 'wrong_head'
  | 'projection_missing'
  | 'projection_wrong'
  | 'projection_extra'
  | 'invalid_authority_key'
  | 'invalid_log_key'
  | 'damaged_row'
  | 'wrong_writetime'
  | 'wrong_snapshot'
  | 'wrong_tile'
  | 'log_behind'
  | 'broken_row'
  | 'unchecked_ledger';

export interface Finding {
  readonly ledgerId: string | null;
  /** null, as for the ledger, if it concerns none in particular. */
  readonly seq: number | null;
  readonly type: FindingType;
  readonly detail: string;
  /** The table with the fault. If left out, the type tells it. */
  readonly table?: string;
  /** The columns of its key, in words. */
  readonly key?: string;
}

/** Whether the log itself may be whole. */
export function isBesideLog(finding: Finding): boolean {
  const { type, table } = finding;
  return isOfProjections(finding) || (type === 'wrong_writetime' && table !== 'ledger_event');
}

export function isOfProjections({ type }: Finding): boolean {
  return type === 'projection_missing' || type === 'projection_wrong' || type === 'projection_extra';
}
