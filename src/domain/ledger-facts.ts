import type { LedgerEvent, LedgerType } from './event.ts';

/** What a ledger is from its GENESIS on and for good. Fields that its type does not have are null. */
export interface LedgerFacts {
  readonly ledgerId: string;
  readonly type: LedgerType;
  readonly buyerActorId: string | null;
  readonly supplierActorId: string | null;
  readonly buyerOrganizationId: string | null;
  readonly supplierOrganizationId: string | null;
  /** FACILITY_ROOT: the founder. ENTITY_ROOT: the entity's actor. ENGAGEMENT: who opened it. */
  readonly primaryActorId: string | null;
  readonly counterpartyActorId: string | null;
  /** FACILITY_ROOT alone. */
  readonly organizationId: string | null;
  /** The entity that the primary actor is, if it is one. */
  readonly entityId: string | null;
  /** ENGAGEMENT alone. */
  readonly purpose: string | null;
  readonly createdAt: string;
  readonly genesisHash: string;
}

/** Reads the facts out of a GENESIS event. */
export function ledgerFacts(genesis: LedgerEvent): LedgerFacts {
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

/** The direct parties of a ledger, who read and write all of it (decisions.md, section 5). */
export function isParty(facts: LedgerFacts, actorId: string): boolean {
  return (
    actorId === facts.buyerActorId ||
    actorId === facts.supplierActorId ||
    actorId === facts.primaryActorId ||
    actorId === facts.counterpartyActorId
  );
}

/** Everyone who is a party, once. */
export function parties(facts: LedgerFacts): string[] {
  const all = [facts.buyerActorId, facts.supplierActorId, facts.primaryActorId, facts.counterpartyActorId];
  return [...new Set(all.filter((actorId) => actorId !== null))];
}
