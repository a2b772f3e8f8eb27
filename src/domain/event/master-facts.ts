import type { LedgerEvent } from './event.ts';

/** What TRACELEDGER_MASTER_CREATED says of a master. It never changes. */
export interface MasterFacts {
  readonly masterId: string;
  readonly ledgerId: string;
  readonly businessRef: string;
  readonly scope: string;
  readonly createdBy: string;
  readonly createdAt: string;
  /** The seq of the creating event in the ledger. */
  readonly createdSeq: number;
}

export function masterFacts(created: LedgerEvent): MasterFacts {
  const payload = JSON.parse(created.payload) as {
    traceledger_master_uuid: string;
    business_ref: string;
    scope: string;
  };
  return {
    masterId: payload.traceledger_master_uuid,
    ledgerId: created.ledgerId,
    businessRef: payload.business_ref,
    scope: payload.scope,
    createdBy: created.actorId ?? '',
    createdAt: created.createdAt,
    createdSeq: created.seq,
  };
}
