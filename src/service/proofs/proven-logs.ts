import type { LogKind } from '../../domain/log/origin.ts';
import type { Walk } from '../walking/walk.ts';

/**
 * A log of the service. `ledgerId`: the ledger that holds the events of a master log; the ledger itself of a ledger
 * log.
 */
export interface Log {
  readonly kind: LogKind;
  readonly id: string;
  readonly ledgerId: string;
}

export interface SignedSize {
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
  /** The signed note. */
  readonly checkpoint: string;
}

/**
 * Checkpoints and proofs of all logs. Every method may throw LedgerError `unavailable` with details.reason
 * `tree_building`, `broken_row` (with details.seq) or `log_behind`. Its message names neither a seq nor a count.
 */
export interface ProvenLogs {
  /** The newest certain size; 0 for an empty log. */
  newestSize(log: Log, walk: Walk): Promise<number>;
  /** null: the log has no such certain size. `orLarger`: a larger certain size serves as well. */
  checkpoint(log: Log, size: number, walk: Walk, orLarger?: boolean): Promise<SignedSize | null>;
  /**
   * The hashes that prove the leaf at `index` in the tree of `size`; both are known to exist. Verified before they are
   * returned.
   */
  inclusion(log: Log, index: number, size: number, walk: Walk): Promise<readonly Uint8Array[]>;
  consistency(log: Log, from: number, to: number, walk: Walk): Promise<readonly Uint8Array[]>;
}
