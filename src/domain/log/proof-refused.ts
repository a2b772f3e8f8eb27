/**
 * Why a checkpoint or a proof is refused:
 * - `malformed`: it has not the one form that docs/proofs.md gives.
 * - `wrong_origin`: it is of another log than the expected one.
 * - `unknown_log_key`: none of the listed keys signed it.
 * - `invalid_signature`: a signature of a listed key does not verify.
 * - `wrong_index`: the proof is for another index than the expected one.
 * - `not_included`: the hashes do not lead from the record at the index to the signed root.
 */
type RefusalReason =
  | 'malformed'
  | 'wrong_origin'
  | 'unknown_log_key'
  | 'invalid_signature'
  | 'wrong_index'
  | 'not_included';

/** Nothing of a checkpoint or proof that was refused may be used. */
export class ProofRefused extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string) {
    super(message);
    this.name = 'ProofRefused';
    this.reason = reason;
  }
}
