import { LedgerError, retryRuleOf } from '../../domain/errors.ts';

/**
 * Awaits a step of a call that has written something in an earlier step. An error that means "nothing was written"
 * becomes `outcome_unknown`. A retry with the same Idempotency-Key continues from there.
 */
export async function afterPartialWrite<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    if (!(error instanceof LedgerError) || retryRuleOf(error.code) !== 'not_written') throw error;
    throw new LedgerError(
      'outcome_unknown',
      'The call was carried out in part, or as a whole: retry with the same Idempotency-Key to have it finished.',
      {},
      error,
    );
  }
}
