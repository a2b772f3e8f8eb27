import { LedgerError } from '../../domain/errors.ts';
import type { PutResult, RecordStore, RecordWrite } from '../../store/record-store.ts';

/** Stores a record that must exist before a call runs. An unknown outcome is `unavailable`: the call has not run. */
export async function putPrerequisite(records: RecordStore, write: RecordWrite): Promise<PutResult> {
  try {
    return await records.put(write);
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'outcome_unknown') throw error;
    throw new LedgerError('unavailable', 'The store did not answer in time; nothing was done: retry.', {}, error);
  }
}
