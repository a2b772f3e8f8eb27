import { canonicalJson } from '../json/canonical.ts';
import type { LedgerFacts, MasterFacts } from './facts.ts';
import type { GrantScope } from './grant.ts';

/**
 * Canonical payloads of the twelve event types that only the service writes. A key without a value is left out.
 *
 * If an actor signs the payload, `…SignedForms` lists every form whose signature is accepted. Errors show the first
 * one.
 */

type Fields = Record<string, unknown>;
type MasterNames = Pick<MasterFacts, 'masterId' | 'businessRef' | 'scope'>;

function json(fields: Fields): string {
  const present = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return canonicalJson(Object.fromEntries(present));
}

export function genesisPayload(facts: Omit<LedgerFacts, 'ledgerId' | 'createdAt' | 'genesisHash'>): string {
  return json({
    ledger_type: facts.type,
    buyer_actor_id: facts.buyerActorId,
    supplier_actor_id: facts.supplierActorId,
    buyer_organization_id: facts.buyerOrganizationId,
    supplier_organization_id: facts.supplierOrganizationId,
    primary_actor_id: facts.primaryActorId,
    counterparty_actor_id: facts.counterpartyActorId,
    organization_id: facts.organizationId,
    entity_id: facts.entityId,
    purpose: facts.purpose,
  });
}

export function orderOpenedPayload(facts: { buyerActorId: string | null; supplierActorId: string | null }): string {
  return json({ buyer_actor_id: facts.buyerActorId, supplier_actor_id: facts.supplierActorId });
}

/** `onboarding`: the fields as they were given, by their names in the API. */
export function organizationRegisteredPayload(organizationId: string, requestId: string, onboarding: Fields): string {
  return json({ ...onboarding, organization_id: organizationId, request_id: requestId });
}

type Sides = Pick<LedgerFacts, 'type' | 'buyerActorId' | 'supplierActorId' | 'primaryActorId'>;

/** The actors that the server names in every payload of a master, by ledger type. */
export function injectedActors(ledger: Sides): Record<string, string> {
  switch (ledger.type) {
    case 'ORDER':
      return { buyer_actor_id: ledger.buyerActorId ?? '', supplier_actor_id: ledger.supplierActorId ?? '' };
    case 'FACILITY_ROOT':
      return { supplier_actor_id: ledger.primaryActorId ?? '' };
    default:
      return {};
  }
}

/** What the server adds to every payload of a master. */
export function injectedFields(ledger: Sides, master: MasterNames): Record<string, string> {
  return {
    traceledger_master_uuid: master.masterId,
    business_ref: master.businessRef,
    scope: master.scope,
    ...injectedActors(ledger),
  };
}

/** The fields that the service adds to what was signed for an append: the injected ones and the delivery chain. */
export const appendAdditions: ReadonlySet<string> = new Set([
  'traceledger_master_uuid',
  'business_ref',
  'scope',
  'buyer_actor_id',
  'supplier_actor_id',
  'delivery_chain',
]);

export function masterCreatedPayload(ledger: LedgerFacts, master: MasterNames): string {
  return json({ ...injectedFields(ledger, master), ledger_id: ledger.ledgerId });
}

export function masterCreatedSignedForms(ledgerId: string, businessRef: string, scope: string): [string] {
  return [json({ ledger_id: ledgerId, business_ref: businessRef, scope })];
}

function closeFields(ledger: LedgerFacts, requestedBy: string): Fields {
  return {
    ledger_id: ledger.ledgerId,
    ledger_type: ledger.type,
    requested_by_actor_id: requestedBy,
    status: 'CLOSED',
  };
}

/** A founder counts as the supplier of its own root. */
function crossPartyFields(ledger: LedgerFacts): Fields {
  if (ledger.type === 'ORDER') {
    return {
      buyer_actor_id: ledger.buyerActorId,
      supplier_actor_id: ledger.supplierActorId,
      buyer_organization_id: ledger.buyerOrganizationId,
      supplier_organization_id: ledger.supplierOrganizationId,
    };
  }
  if (ledger.type === 'FACILITY_ROOT') {
    return {
      buyer_actor_id: null,
      supplier_actor_id: ledger.primaryActorId,
      buyer_organization_id: null,
      supplier_organization_id: ledger.organizationId,
    };
  }
  return {};
}

/** If there are keys without a value, also the form that has them as null. */
function withAndWithoutNulls(fields: Fields): [string, ...string[]] {
  const short = json(fields);
  const long = canonicalJson(fields);
  return short === long ? [short] : [short, long];
}

export function ledgerClosedSignedForms(ledger: LedgerFacts, requestedBy: string): [string, ...string[]] {
  return withAndWithoutNulls({ ...closeFields(ledger, requestedBy), ...crossPartyFields(ledger) });
}

export function ledgerClosedPayload(
  ledger: LedgerFacts,
  requestedBy: string,
  request: { readonly signature: string; readonly keyId: string } | null,
): string {
  return json({
    ...closeFields(ledger, requestedBy),
    ...crossPartyFields(ledger),
    requestor_sig: request?.signature,
    requestor_signing_key_id: request?.keyId,
  });
}

function masterCloseFields(ledger: LedgerFacts, masterId: string, requestedBy: string): Fields {
  const { buyer_actor_id: _, ...crossParty } = crossPartyFields(ledger);
  const hasEntity = ledger.type === 'ENGAGEMENT' || ledger.type === 'ENTITY_ROOT';
  const entity = hasEntity ? { entity_id: ledger.entityId } : {};
  return { ...closeFields(ledger, requestedBy), traceledger_master_uuid: masterId, ...crossParty, ...entity };
}

export function masterClosedSignedForms(ledger: LedgerFacts, masterId: string, by: string): [string, ...string[]] {
  return withAndWithoutNulls(masterCloseFields(ledger, masterId, by));
}

export function masterClosedPayload(ledger: LedgerFacts, masterId: string, requestedBy: string): string {
  return json(masterCloseFields(ledger, masterId, requestedBy));
}

export function grantObject(scope: GrantScope, id: string): Record<string, string> {
  switch (scope) {
    case 'organization':
      return { organization_id: id };
    case 'ledger':
      return { ledger_id: id };
    case 'master':
      return { traceledger_master_id: id };
  }
}

/** What an event of this type closes for good: its ledger, and so all masters of it, or its master. null: nothing. */
export function closedByType(eventType: string): 'ledger' | 'master' | null {
  if (eventType === 'LEDGER_CLOSED') return 'ledger';
  return eventType === 'MASTER_CLOSED' ? 'master' : null;
}

/** undefined: the event type neither grants nor revokes. */
export function delegationOfType(
  eventType: string,
): { readonly isGrant: boolean; readonly scope: GrantScope } | undefined {
  return delegationTypes.get(eventType);
}

export const grantedType = {
  organization: 'SUPPLIER_DELEGATION_GRANTED',
  ledger: 'LEDGER_DELEGATION_GRANTED',
  master: 'MASTER_DELEGATION_GRANTED',
} as const;

export const revokedType = {
  organization: 'SUPPLIER_DELEGATION_REVOKED',
  ledger: 'LEDGER_DELEGATION_REVOKED',
  master: 'MASTER_DELEGATION_REVOKED',
} as const;

const delegationTypes = new Map(
  (['organization', 'ledger', 'master'] as const).flatMap((scope) => [
    [grantedType[scope] as string, { isGrant: true, scope }],
    [revokedType[scope] as string, { isGrant: false, scope }],
  ]),
);

/** Without `permissions` in the request, `{}` or no such key is signed. */
export function grantSignedForms(
  object: Fields,
  delegateActorId: string,
  role: string,
  permissions: unknown,
): [string, ...string[]] {
  const base = { ...object, delegate_actor_id: delegateActorId, role };
  return permissions === undefined
    ? [json({ ...base, permissions: {} }), json(base)]
    : [json({ ...base, permissions })];
}

export function revokeSignedForms(object: Fields, delegateActorId: string): [string] {
  return [json({ ...object, delegate_actor_id: delegateActorId })];
}

/** For POST …/access: the request as sent, and the master. */
export function accessSignedForms(
  masterId: string,
  delegate: string,
  access: string,
  expiresAt: string | undefined,
): [string] {
  return [json({ access, delegate_actor_id: delegate, expires_at: expiresAt, traceledger_master_id: masterId })];
}

/** The fields that the service adds to what was signed for a grant. It may also derive `role` and `permissions`. */
export const grantAdditions: ReadonlySet<string> = new Set(['link_id', 'granted_at', 'replaces_link_id']);

/** `signed`: the request's own fields, `expires_at` as it was sent. */
export function grantedPayload(
  signed: Fields,
  own: {
    readonly linkId: string;
    readonly grantedAt: string;
    readonly role: string;
    readonly permissions: unknown;
    readonly replacesLinkId: string | null;
  },
): string {
  return json({
    ...signed,
    role: own.role,
    permissions: own.permissions,
    link_id: own.linkId,
    granted_at: own.grantedAt,
    replaces_link_id: own.replacesLinkId,
  });
}

export function revokedPayload(signed: Fields, own: { readonly linkId: string; readonly revokedAt: string }): string {
  return json({ ...signed, link_id: own.linkId, revoked_at: own.revokedAt });
}
