import { LedgerError } from '../../domain/errors.ts';

/** Adds `field` to the details of a `not_found` error, unless the error names a field itself. */
export async function withNotFoundField<T>(field: string, found: Promise<T>): Promise<T> {
  try {
    return await found;
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'not_found') throw error;
    throw new LedgerError('not_found', error.message, { field, ...error.details }, error);
  }
}
