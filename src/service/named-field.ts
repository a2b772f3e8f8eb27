import { LedgerError } from '../domain/errors.ts';

/** Has a `not_found` say in which field the object was named, unless it names one itself (decisions.md, section 2). */
export async function namedIn<T>(field: string, found: Promise<T>): Promise<T> {
  try {
    return await found;
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'not_found') throw error;
    throw new LedgerError('not_found', error.message, { field, ...error.details }, error);
  }
}
