import { LedgerError } from '../domain/errors.ts';

/**
 * A store takes no more writes as long as this process runs, since one has failed. Nothing was written; trying again in this process is in vain.
 * Reads go on.
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
