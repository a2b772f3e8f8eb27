import { LedgerError } from '../../domain/errors.ts';
import type { PutResult, RecordStore, RecordWrite } from '../../store/record-store.ts';

/**
 * Puts a record without which a call is not carried out. Where nobody can say whether it stands, of the call itself
 * nothing was done: `unavailable`.
 */
export async function putPrerequisite(records: RecordStore, write: RecordWrite): Promise<PutResult> {
  try {
    return await records.put(write);
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'outcome_unknown') throw error;
    throw new LedgerError('unavailable', 'The store did not answer in time; nothing was done: retry.', {}, error);
  }
}
