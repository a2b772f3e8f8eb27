import { type ErrorCode, LedgerError } from '../domain/errors.ts';

/** Codes that say that nothing was written (decisions.md, section 2). */
const nothingWritten: ReadonlySet<ErrorCode> = new Set(['unavailable', 'overloaded']);

/**
 * A step of a call that has written before it. Where the step cannot be done, something was written all the same: what says that nothing
 * was becomes `outcome_unknown`. A retry with the same Idempotency-Key goes on from there.
 */
export async function afterPartialWrite<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    if (!(error instanceof LedgerError) || !nothingWritten.has(error.code)) throw error;
    throw new LedgerError(
      'outcome_unknown',
      'The call was carried out in part, or as a whole: retry with the same Idempotency-Key to have it finished.',
      {},
      error,
    );
  }
}
