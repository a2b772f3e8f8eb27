import { LedgerError } from '../../domain/errors.ts';
import type { PutResult, RecordStore, RecordWrite } from '../../store/record-store.ts';

/**
 * Stores a record that must exist before a call runs. Throws `unavailable` if the outcome of the write is unknown: the
 * call itself has not run yet.
 */
export async function putPrerequisite(records: RecordStore, write: RecordWrite): Promise<PutResult> {
  try {
    return await records.put(write);
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'outcome_unknown') throw error;
    throw new LedgerError('unavailable', 'The store did not answer in time; nothing was done: retry.', {}, error);
  }
}
