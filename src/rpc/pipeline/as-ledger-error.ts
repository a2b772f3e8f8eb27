import { LedgerError } from '../../domain/errors.ts';

/** Returns a LedgerError as it is, and anything else as `internal` with its cause, which only the log shows. */
export function asLedgerError(thrown: unknown): LedgerError {
  if (thrown instanceof LedgerError) return thrown;
  const message = 'Something went wrong inside the service; the request id helps to find out what.';
  return new LedgerError('internal', message, {}, thrown);
}
