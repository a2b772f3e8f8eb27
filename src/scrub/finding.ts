import type { VerificationIssueType } from '../client/verification.ts';
import type { DecisionIssueType } from '../domain/decision-check.ts';

/**
 * What a scrub finds wrong in a store. Beside what is wrong in the chain itself: `unreadable_row` is no event any more; `wrong_head`: the
 * ledger, or a full part of its log, does not end where the store says; `projection_*`: what is looked up beside the log is not what follows
 * from it; `invalid_authority_key`: the start of a key of the authority is not signed by the one before; `damaged_row`: a row
 * that is not what the service writes; `wrong_snapshot`: a snapshot that is not the fold of its log; `unchecked_ledger`: what is stored of a
 * ledger could not be looked at to its end.
 */
export type FindingType =
  | VerificationIssueType
  | DecisionIssueType
  | 'unreadable_row'
  | 'wrong_head'
  | 'projection_missing'
  | 'projection_wrong'
  | 'projection_extra'
  | 'invalid_authority_key'
  | 'damaged_row'
  | 'wrong_snapshot'
  | 'unchecked_ledger';

export interface Finding {
  /** null: of no ledger in particular. */
  readonly ledgerId: string | null;
  /** null: of no event in particular. */
  readonly seq: number | null;
  readonly type: FindingType;
  readonly detail: string;
  /** Where it stands; else it is told from the type. */
  readonly table?: string;
  /** The columns of its key, in words. */
  readonly key?: string;
}

/** Whether it is about what is kept beside a log, and not about the log. */
export function isOfProjections({ type }: Finding): boolean {
  return type === 'projection_missing' || type === 'projection_wrong' || type === 'projection_extra';
}
