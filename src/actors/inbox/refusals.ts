import { LedgerError } from '../../domain/errors.ts';

export function timeIsUp(): LedgerError {
  return new LedgerError('unavailable', 'The call waited too long and was not written; retry it.');
}

export function reloading(cause?: unknown): LedgerError {
  return new LedgerError('unavailable', 'The ledger is being loaded again; nothing was written, retry.', {}, cause);
}

export function stopping(): LedgerError {
  return new LedgerError('unavailable', 'This node is stopping; nothing was written, retry.');
}

export function clockIsOff(): LedgerError {
  return new LedgerError(
    'unavailable',
    'The clock of this node is off, so it decides nothing; nothing was written, retry to reach another node.',
  );
}

export function notRunHere(): LedgerError {
  return new LedgerError('unavailable', 'This node does not run the ledger; nothing was done.');
}

export function somethingWrong(cause: unknown): LedgerError {
  return new LedgerError(
    'internal',
    'Something went wrong here; the call may be retried with its Idempotency-Key.',
    {},
    cause,
  );
}

/** Not `unavailable`, which says that nothing was written. */
export function damagedReplay(ledgerId: string, seq: number, cause: unknown): LedgerError {
  return new LedgerError(
    'internal',
    'This call was carried out before, and the event that it wrote is damaged in the store: do not send it under another Idempotency-Key, and ask the operator to restore the event.',
    { ledger_id: ledgerId, seq },
    cause,
  );
}

export function outcomeUnknown(cause?: unknown): LedgerError {
  return new LedgerError(
    'outcome_unknown',
    'The event may or may not have been written: retry with the same Idempotency-Key to learn which.',
    {},
    cause,
  );
}

/**
 * The error for a resubmitted command that is refused here. Another node may have carried it out, or may still do so.
 * Only a key that the log has for another call is certain everywhere.
 */
export function refusedWhenResubmitted(error: LedgerError): LedgerError {
  const { code } = error;
  return code === 'idempotency_key_reused' || code === 'outcome_unknown' ? error : outcomeUnknown(error);
}

export function laneBroken(): LedgerError {
  return new LedgerError(
    'unavailable',
    'An event before this one was not written; nothing was written, send both again in order.',
  );
}
