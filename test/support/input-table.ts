import type { Kind } from './bad-values.ts';
import * as bad from './bad-values.ts';

type FieldRules = Readonly<Record<string, Kind>>;

const page: FieldRules = { limit: bad.limit, offset: bad.offset, order: bad.order };
const createdIn: FieldRules = { from: bad.time, to: bad.time };
const eventPage: FieldRules = {
  ...page,
  cursor: bad.cursor,
  event_type: bad.eventType,
  event_id: bad.uuid,
  from_seq: bad.seq,
  ...createdIn,
  verify: bad.oneOf('all', 'SIGNATURES'),
};
const followed: FieldRules = {
  event_type: bad.eventType,
  event_id: bad.uuid,
  ...createdIn,
  verify: bad.oneOf('all', 'SIGNATURES'),
};
const scope: FieldRules = { organization_id: bad.uuid, ledger_id: bad.uuid, master_id: bad.uuid };
const accessTo: FieldRules = { delegate_actor_id: bad.uuid };
const grant: FieldRules = { ...accessTo, role: bad.label, permissions: bad.permissions };
const algorithm = bad.oneOf('RSA', 'ed25519');
const append: FieldRules = { uuid: bad.uuid, event_type: bad.callerEventType, payload: bad.payload };

/**
 * The kind of every field of every request, by `Service.Method`, as the fields stand in the descriptors: each value of
 * the kind is refused wherever it stands in place of a good one. Written from the rules of fields, not from the code.
 */
export const inputTable: Readonly<Record<string, FieldRules>> = {
  'DeveloperService.RegisterDeveloper': {
    name: bad.name,
    email: bad.email,
    region: bad.oneOf('us', 'EU'),
    public_key: bad.publicKey,
  },
  'DeveloperService.CreateApiKey': { name: bad.name },
  'DeveloperService.RevokeApiKey': { key_id: bad.uuid },
  'ActorService.CreateActor': { role: bad.label, public_key: bad.publicKey, algorithm },
  'ActorService.LookupActor': { svc_id: [...bad.actorUri, ...bad.reservedUri] },
  'ActorService.GetActor': { actor_id: bad.uuid },
  'ActorService.ListActorKeys': { actor_id: bad.uuid },
  'ActorService.EnrollActorKey': { actor_id: bad.uuid, public_key: bad.publicKey, algorithm },
  'ActorService.PreferActorKey': { actor_id: bad.uuid, kid: bad.kid },
  'ActorService.RevokeActorKey': { actor_id: bad.uuid, kid: bad.kid, reason: bad.name },
  'ActorService.ListNetworkActors': page,
  'ResolverService.ResolveActor': { svc_uri: [...bad.actorUri, ...bad.reservedNamespace] },
  'OrganizationService.OnboardOrganization': {
    legal_name: bad.name,
    country: bad.country,
    region: bad.name,
    city: bad.name,
    vat_tax_number: bad.name,
    primary_email: bad.email,
    terms_version: bad.name,
    declaration_hash: bad.name,
    supplier_name: bad.name,
    registered_address: bad.name,
  },
  'OrganizationService.ListOrganizations': { actor_id: bad.uuid, ...page },
  'OrganizationService.GetOrganization': { id: bad.uuid },
  'OrganizationService.EnrichOrganization': {
    organization_id: bad.uuid,
    trade_name: bad.name,
    postal_code: bad.name,
    city: bad.name,
    region: bad.name,
    primary_email: bad.email,
    registered_address: bad.name,
    website: bad.url,
    phone: bad.name,
  },
  'EntityService.OnboardEntity': {
    display_name: bad.name,
    entity_type: bad.label,
    unique_id: bad.name,
    owner_actor_id: bad.uuid,
    metadata: bad.metadata,
    public_key: bad.publicKey,
  },
  'EntityService.ListEntities': page,
  'EntityService.GetEntity': { actor_id: bad.uuid },
  'EntityService.GetRootLedger': { actor_id: bad.uuid },
  'EntityService.CloseRootLedger': { actor_id: bad.uuid },
  'EngagementService.CreateEngagement': { counterparty_actor_id: bad.uuid, purpose: bad.label },
  'EngagementService.GetEngagement': { ledger_id: bad.uuid },
  'EngagementService.CloseEngagement': { ledger_id: bad.uuid },
  'LedgerService.CreateLedger': {
    supplier_svc_id: [...bad.actorUri, ...bad.reservedUri],
    buyer_svc_id: [...bad.actorUri, ...bad.reservedUri],
    supplier_actor_id: bad.uuid,
    buyer_actor_id: bad.uuid,
    supplier_organization_id: bad.uuid,
    buyer_organization_id: bad.uuid,
  },
  'LedgerService.ListLedgers': {
    ledger_type: bad.oneOf('X', 'order'),
    status: bad.oneOf('open'),
    role: bad.oneOf('owner'),
    counterparty_actor_id: bad.uuid,
    cursor: bad.cursor,
    ...createdIn,
    ...page,
  },
  'LedgerService.GetLedger': { ledger_id: bad.uuid },
  'LedgerService.ListLedgerEvents': { ledger_id: bad.uuid, ...eventPage },
  'LedgerService.FollowLedgerEvents': { ledger_id: bad.uuid, after_seq: bad.place, ...followed },
  'LedgerService.CloseLedger': { ledger_id: bad.uuid },
  'MasterService.CreateMaster': { ledger_id: bad.uuid, business_ref: bad.name, scope: bad.label },
  'MasterService.ListMasters': {
    ledger_id: bad.uuid,
    business_ref: bad.nameInQuery,
    scope: bad.label,
    status: bad.oneOf('open'),
    cursor: bad.cursor,
    ...createdIn,
    ...page,
  },
  'MasterService.GetMaster': { uuid: bad.uuid },
  'MasterService.AppendEvent': append,
  'MasterService.AppendEvents': {
    ...append,
    idempotency_key: bad.named('Idempotency-Key', bad.idempotencyKey),
    delivery_chain: bad.named('X-Delivery-Chain', bad.deliveryChain),
    signing_key_id: bad.signatureOfUnkeyed,
    actor_sig: bad.signatureOfUnkeyed,
  },
  'MasterService.ListMasterEvents': { uuid: bad.uuid, ...eventPage },
  'MasterService.FollowMasterEvents': { uuid: bad.uuid, after_master_seq: bad.place, ...followed },
  'MasterService.CloseMaster': { uuid: bad.uuid },
  'MasterService.GrantMasterAccess': {
    uuid: bad.uuid,
    actor_id: bad.uuid,
    access: bad.oneOf('admin', 'READ'),
    expires_at: [...bad.time, ...bad.refused(bad.pastTime)],
  },
  'MasterService.ListMasterAccess': { uuid: bad.uuid, ...page },
  'MasterService.RevokeMasterAccess': { uuid: bad.uuid, link_id: bad.uuid },
  'DelegationService.GrantOrganizationDelegation': { organization_id: bad.uuid, ...grant },
  'DelegationService.RevokeOrganizationDelegation': { organization_id: bad.uuid, ...accessTo },
  'DelegationService.ListOrganizationDelegations': { organization_id: bad.uuid, ...page },
  'DelegationService.GrantLedgerDelegation': { ledger_id: bad.uuid, ...grant },
  'DelegationService.RevokeLedgerDelegation': { ledger_id: bad.uuid, ...accessTo },
  'DelegationService.ListLedgerDelegations': { ledger_id: bad.uuid, ...page },
  'DelegationService.GrantMasterDelegation': { master_id: bad.uuid, ...grant },
  'DelegationService.RevokeMasterDelegation': { master_id: bad.uuid, ...accessTo },
  'DelegationService.ListMasterDelegations': { master_id: bad.uuid, ...page },
  'DelegationService.GetDelegationSnapshot': { ...scope, at: bad.time, ...page },
  'DelegationService.GetDelegationProof': { ...scope, ...eventPage },
  'ProofService.GetLedgerCheckpoint': { ledger_id: bad.uuid, size: bad.treeSize },
  'ProofService.GetLedgerInclusion': { ledger_id: bad.uuid, seq: bad.seq, event_id: bad.uuid, size: bad.treeSize },
  'ProofService.GetLedgerConsistency': { ledger_id: bad.uuid, from: bad.treeSize, to: bad.treeSize },
  'ProofService.GetMasterCheckpoint': { uuid: bad.uuid, size: bad.treeSize },
  'ProofService.GetMasterInclusion': { uuid: bad.uuid, master_seq: bad.seq, event_id: bad.uuid, size: bad.treeSize },
  'ProofService.GetMasterConsistency': { uuid: bad.uuid, from: bad.treeSize, to: bad.treeSize },
  'AuditService.ListAccessEvents': { ledger_id: bad.uuid, ...page },
  'WebhookService.CreateWebhook': { url: bad.target, event_types: bad.eventTypes, ledger_id: bad.uuid },
  'WebhookService.ListWebhooks': page,
  'WebhookService.DeleteWebhook': { id: bad.uuid },
  'WebhookService.ListWebhookDeliveries': { id: bad.uuid, ...page },
  'WebhookService.TestWebhook': { id: bad.uuid },
  'WebhookService.RedeliverWebhook': { id: bad.uuid, delivery_id: bad.uuid },
};

/** Any text is a valid filter and may find nothing. */
const anyText = ['', 'a\0b', '\u{1f600}', 'x'.repeat(10_000)];
const eitherWay = [true, false];

/** Fields without a rule, with accepted values. */
export const fieldsWithoutRule: Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>> = {
  'ActorService.ListActorKeys': { include_revoked: eitherWay },
  'EntityService.SetArlGate': { require_arl: eitherWay },
  'EntityService.ListEntities': {
    entity_type: anyText,
    unique_id: anyText,
    display_name: anyText,
    trust_level: anyText,
  },
  // The caller's own number, which comes back unchanged.
  'MasterService.AppendEvents': { client_index: [-1, 0, 2 ** 53 - 1] },
  'DelegationService.ListOrganizationDelegations': { include_revoked: eitherWay },
  'DelegationService.ListLedgerDelegations': { include_revoked: eitherWay },
  'DelegationService.ListMasterDelegations': { include_revoked: eitherWay },
};
