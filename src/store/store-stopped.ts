import { LedgerError } from '../domain/errors.ts';

/**
 * A write has failed, so the store accepts no more writes in this process. Nothing was written, and a retry in this
 * process fails too. Reads go on.
 */
export class StoreStopped extends LedgerError {
  constructor() {
    super(
      'unavailable',
      'Nothing was written: this node cannot write to its disk any more and stops. Retry when its operator has mended the disk.',
    );
    this.name = 'StoreStopped';
  }
}
