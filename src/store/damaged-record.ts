import { LedgerError } from '../domain/errors.ts';

/**
 * A record is there and cannot be read: never to be taken for one that is not there. `internal`, since nothing that the caller does mends it. Which
 * record it is stands in the cause, for the log.
 */
export class DamagedRecord extends LedgerError {
  constructor(kind: string, id: string, reason: string, cause?: unknown) {
    super(
      'internal',
      'A stored record that this call needs is damaged. The operator finds it by this request id in the log, or by `ledger-trust scrub`, and has to restore it from a backup.',
      {},
      new Error(`the stored ${kind} record ${JSON.stringify(id)} is damaged: ${reason}`, { cause }),
    );
    this.name = 'DamagedRecord';
  }
}

/** The JSON value of a record. Throws DamagedRecord for a text that is none. */
export function parseStored(kind: string, id: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new DamagedRecord(kind, id, 'its value is no JSON', error);
  }
}
