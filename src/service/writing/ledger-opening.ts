import type { Directory } from '../../actors/routing/directory.ts';
import { LedgerError } from '../../domain/errors.ts';
import { type LedgerFacts, noFacts } from '../../domain/event/facts.ts';
import type { OpenLedger } from '../../domain/ledger/command.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';

type OpeningFacts = OpenLedger['facts'];

export function facts(type: OpeningFacts['type'], present: Partial<OpeningFacts>): OpeningFacts {
  return { ...noFacts, ...present, type };
}

export type LedgerOpening = ReturnType<typeof ledgerOpening>;

/**
 * Opens ledgers: writes the first events of a ledger, and returns its facts. The id is the call's own, or derived from
 * the ledger's owner. So a ledger that exists under it is this one, and is returned with its first facts: for a retry
 * after a crash, and for the second opening of a root ledger.
 */
export function ledgerOpening(directory: Directory, reading: LedgerReading) {
  return async (
    call: Call,
    ledgerId: string,
    opening: OpeningFacts,
    registeredPayload: string | null = null,
  ): Promise<LedgerFacts> => {
    const { actorId, actorType } = callerOf(call);
    call.named(ledgerId);
    try {
      await directory.submit({
        kind: 'open_ledger',
        ledgerId,
        actorId,
        actorType,
        signature: null,
        signatureRule: 'optional',
        commandKeys: [],
        requestId: call.requestId,
        deadline: call.deadline,
        facts: opening,
        registeredPayload,
      });
    } catch (error) {
      if (!(error instanceof LedgerError) || error.code !== 'already_exists') throw error;
    }
    const opened = await afterPartialWrite(reading.ledgerFacts(ledgerId));
    if (opened === null) throw new Error(`ledger ${ledgerId} was opened but is not there`);
    return opened;
  };
}
