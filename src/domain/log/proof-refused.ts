/**
 * Why a checkpoint or a proof is refused:
 * - `malformed`: it has not the one form that docs/proofs.md gives.
 * - `wrong_origin`: it is of another log than the expected one.
 * - `unknown_log_key`: none of the known keys signed it.
 * - `invalid_signature`: a signature of a known key does not verify.
 * - `wrong_index`: the proof is for another index than the expected one.
 * - `not_included`: the hashes do not lead from the record at the index to the signed root.
 * - `not_consistent`: the hashes do not show that the older state is the beginning of the newer one.
 * - `wrong_event`: the event does not have the hashes that it shows.
 * - `checkpoint_behind`: the newest checkpoint is smaller than one that was kept before.
 * - `checkpoints_contradict`: it is not shown that the checkpoint agrees with the kept one. `notes` has both.
 * - `origin_changed`: the service has another name than before.
 */
type RefusalReason =
  | 'malformed'
  | 'wrong_origin'
  | 'unknown_log_key'
  | 'invalid_signature'
  | 'wrong_index'
  | 'not_included'
  | 'not_consistent'
  | 'wrong_event'
  | 'checkpoint_behind'
  | 'checkpoints_contradict'
  | 'origin_changed';

/** Nothing of a checkpoint or proof that was refused may be used. */
export class ProofRefused extends Error {
  readonly reason: RefusalReason;
  /** For `checkpoint_behind` and `checkpoints_contradict`: the kept note, and the one that was refused. Else empty. */
  readonly notes: readonly string[];

  constructor(reason: RefusalReason, message: string, notes: readonly string[] = []) {
    super(message);
    this.name = 'ProofRefused';
    this.reason = reason;
    this.notes = notes;
  }
}
