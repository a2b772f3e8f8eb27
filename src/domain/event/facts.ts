import type { LedgerEvent, LedgerType } from './event.ts';

/** What GENESIS says of a ledger. Fields that the ledger's type does not have are null. */
export interface LedgerFacts {
  readonly ledgerId: string;
  readonly type: LedgerType;
  readonly buyerActorId: string | null;
  readonly supplierActorId: string | null;
  readonly buyerOrganizationId: string | null;
  readonly supplierOrganizationId: string | null;
  /** FACILITY_ROOT: the founder. ENTITY_ROOT: the entity's actor. ENGAGEMENT: the actor that opened it. */
  readonly primaryActorId: string | null;
  readonly counterpartyActorId: string | null;
  /** FACILITY_ROOT only. */
  readonly organizationId: string | null;
  /** null if the primary actor is not an entity. */
  readonly entityId: string | null;
  /** ENGAGEMENT only. */
  readonly purpose: string | null;
  readonly createdAt: string;
  readonly genesisHash: string;
}

/** The facts that depend on the ledger's type, for a ledger that has none of them. */
export const noFacts = {
  buyerActorId: null,
  supplierActorId: null,
  buyerOrganizationId: null,
  supplierOrganizationId: null,
  primaryActorId: null,
  counterpartyActorId: null,
  organizationId: null,
  entityId: null,
  purpose: null,
};

export function ledgerFacts(genesis: Pick<LedgerEvent, 'ledgerId' | 'payload' | 'createdAt' | 'hash'>): LedgerFacts {
  const payload = JSON.parse(genesis.payload) as Record<string, string | undefined>;
  return {
    ledgerId: genesis.ledgerId,
    type: payload.ledger_type as LedgerType,
    buyerActorId: payload.buyer_actor_id ?? null,
    supplierActorId: payload.supplier_actor_id ?? null,
    buyerOrganizationId: payload.buyer_organization_id ?? null,
    supplierOrganizationId: payload.supplier_organization_id ?? null,
    primaryActorId: payload.primary_actor_id ?? null,
    counterpartyActorId: payload.counterparty_actor_id ?? null,
    organizationId: payload.organization_id ?? null,
    entityId: payload.entity_id ?? null,
    purpose: payload.purpose ?? null,
    createdAt: genesis.createdAt,
    genesisHash: genesis.hash,
  };
}

/** The parties of a ledger read and write all of it. */
export function isParty(facts: LedgerFacts, actorId: string): boolean {
  return (
    actorId === facts.buyerActorId ||
    actorId === facts.supplierActorId ||
    actorId === facts.primaryActorId ||
    actorId === facts.counterpartyActorId
  );
}

export function parties(facts: LedgerFacts): string[] {
  const all = [facts.buyerActorId, facts.supplierActorId, facts.primaryActorId, facts.counterpartyActorId];
  return [...new Set(all.filter((actorId) => actorId !== null))];
}

/** What TRACELEDGER_MASTER_CREATED says of a master. */
export interface MasterFacts {
  readonly masterId: string;
  readonly ledgerId: string;
  readonly businessRef: string;
  readonly scope: string;
  readonly createdBy: string;
  readonly createdAt: string;
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
