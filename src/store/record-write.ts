import { LedgerError } from '../domain/errors.ts';
import type { RecordWrite } from './record-store.ts';
import { checkOrder, checkRecordId } from './store-text.ts';

/** Checks the write of a put. Throws RangeError or TypeError if no store could carry the write out. */
export function checkRecordWrite(write: RecordWrite): void {
  checkRecordId(write.id);
  const seen = new Set<string>();
  for (const { name, value, order } of write.lookups) {
    checkOrder(order);
    const key = JSON.stringify([name, value]);
    if (seen.has(key)) throw new TypeError(`A record stands once under look-up ${name}`);
    seen.add(key);
  }
  const { expiresAt } = write;
  if (expiresAt !== undefined && (!Number.isSafeInteger(expiresAt) || expiresAt < 0))
    throw new TypeError('expiresAt is a whole number of milliseconds');
}

/** The error of a put or removal that may or may not have been written. */
export function unsettled(cause?: unknown): LedgerError {
  return new LedgerError(
    'outcome_unknown',
    'The store did not say whether this was written: retry with the same Idempotency-Key to learn which.',
    {},
    cause,
  );
}
