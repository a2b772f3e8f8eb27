import { expect } from 'vitest';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import type { LedgerFacts } from '../../src/domain/event/facts.ts';
import { organizationRegisteredPayload } from '../../src/domain/event/service-events.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import {
  buyer,
  ledgerId,
  type OpeningFacts,
  openingFacts,
  openLedger,
  orderFacts,
  supplier,
  uuid,
} from './commands.ts';
import { type Chain, chainOf, start } from './world.ts';

export const organization = uuid(0x50);
export const otherOrganization = uuid(0x51);
export const entity = uuid(0x60);
/** The supplier's key. */
export const kid = `svc:actor:${supplier}#key-1`;

/** What ledgers of each type open with, and of those that vary in form, each form. */
export const kinds = {
  order: orderFacts,
  'order with organizations': {
    ...orderFacts,
    buyerOrganizationId: otherOrganization,
    supplierOrganizationId: organization,
  },
  'order with one organization': { ...orderFacts, supplierOrganizationId: organization },
  'facility root': openingFacts('FACILITY_ROOT', { primaryActorId: supplier, organizationId: organization }),
  'entity root': openingFacts('ENTITY_ROOT', {
    primaryActorId: supplier,
    counterpartyActorId: supplier,
    entityId: entity,
  }),
  engagement: openingFacts('ENGAGEMENT', { primaryActorId: supplier, counterpartyActorId: buyer, purpose: 'REPAIR' }),
  'engagement of an entity': openingFacts('ENGAGEMENT', {
    primaryActorId: supplier,
    counterpartyActorId: buyer,
    purpose: 'REPAIR',
    entityId: entity,
  }),
} satisfies Record<string, OpeningFacts>;
export type Kind = keyof typeof kinds;

export function factsOf(kind: Kind): LedgerFacts {
  return { ...kinds[kind], ledgerId, createdAt: start, genesisHash: 'ab'.repeat(32) };
}

/** An event's payload, which must stand in canonical form. */
export function payloadOf(event: LedgerEvent): unknown {
  expect(event.payload).toBe(canonicalJson(JSON.parse(event.payload)));
  return JSON.parse(event.payload);
}

const registered = organizationRegisteredPayload(organization, uuid(0x52), {
  legal_name: 'Acme',
  country: 'IN',
  region: undefined,
});

/** The chain of a new ledger of that kind. */
export function opened(kind: Kind): Chain {
  return chainOf(openLedger({ facts: kinds[kind], registeredPayload: kind === 'facility root' ? registered : null }));
}
