import type { Directory } from '../../actors/routing/directory.ts';
import { LedgerError } from '../../domain/errors.ts';
import type { LedgerFacts } from '../../domain/event/ledger-facts.ts';
import type { OpenLedger } from '../../domain/ledger/command.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/call-caller.ts';
import { afterPartialWrite } from '../calls/partial-failure.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';

type OpeningFacts = OpenLedger['facts'];

/** The facts of a new ledger of this type. Facts that are not given are null. */
export function facts(type: OpeningFacts['type'], present: Partial<OpeningFacts>): OpeningFacts {
  return {
    buyerActorId: null,
    supplierActorId: null,
    buyerOrganizationId: null,
    supplierOrganizationId: null,
    primaryActorId: null,
    counterpartyActorId: null,
    organizationId: null,
    entityId: null,
    purpose: null,
    ...present,
    type,
  };
}

/** Opens ledgers through their actors. */
export class LedgerOpening {
  readonly #directory: Directory;
  readonly #reading: LedgerReading;

  constructor(directory: Directory, reading: LedgerReading) {
    this.#directory = directory;
    this.#reading = reading;
  }

  /**
   * Writes the first events of a ledger, and returns its facts. The id is the call's own, or derived from the ledger's
   * owner. So a ledger that exists under it is this one, and is returned with its first facts: for a retry after a
   * crash, and for the second opening of a root ledger.
   */
  async open(
    call: Call,
    ledgerId: string,
    opening: OpeningFacts,
    registeredPayload: string | null,
  ): Promise<LedgerFacts> {
    const caller = callerOf(call);
    call.named(ledgerId);
    try {
      await this.#directory.submit({
        kind: 'open_ledger',
        ledgerId,
        actorId: caller.actorId,
        actorType: caller.actorType,
        signature: null,
        signatureRule: 'optional',
        commandKeys: [],
        deadline: call.deadline,
        facts: opening,
        registeredPayload,
      });
    } catch (error) {
      if (!(error instanceof LedgerError) || error.code !== 'already_exists') throw error;
    }
    const opened = await afterPartialWrite(this.#reading.ledgerFacts(ledgerId));
    if (opened === null) throw new Error(`ledger ${ledgerId} was opened but is not there`);
    return opened;
  }
}
