import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { type LedgerNaming, nameRootLedger } from './ledger-naming.ts';

/**
 * How methods without a `ledger_id` in their request name a ledger. A `ledger_id` is noted for all methods alike.
 * Methods that open a ledger name it when they open it (ledger-opening.ts), RedeliverWebhook names the event's ledger
 * once it is found (webhooks.ts), and AppendEvents names the ledgers of its events (append-stream.ts).
 */

export function masterNames(naming: LedgerNaming) {
  const byUuid = (request: { readonly uuid: string }, call: Call, refused: boolean) =>
    naming.master(call, request.uuid, refused);
  return {
    getMaster: byUuid,
    appendEvent: byUuid,
    listMasterEvents: byUuid,
    closeMaster: byUuid,
    grantMasterAccess: byUuid,
    listMasterAccess: byUuid,
    revokeMasterAccess: byUuid,
  };
}

export function organizationNames(naming: LedgerNaming) {
  return {
    getOrganization: (request: { readonly id: string }, call: Call) => naming.organization(call, request.id),
    enrichOrganization: (request: OfOrganization, call: Call) => naming.organization(call, request.organizationId),
  };
}

/** A root ledger's id is derived from the entity's actor id, whether it was opened or not. */
export function entityNames() {
  const ofActor = (request: { readonly actorId: string }, call: Call) => nameRootLedger(call, request.actorId);
  return {
    createRootLedger: (_request: object, call: Call) => nameRootLedger(call, callerOf(call).actorId),
    getRootLedger: ofActor,
    closeRootLedger: ofActor,
  };
}

export function delegationNames(naming: LedgerNaming) {
  const ofOrganization = (request: OfOrganization, call: Call) => naming.organization(call, request.organizationId);
  const ofMaster = (request: { readonly masterId: string }, call: Call, refused: boolean) =>
    naming.master(call, request.masterId, refused);
  const ofScope = async (request: OfScope, call: Call, refused: boolean) => {
    if (request.organizationId !== undefined) await naming.organization(call, request.organizationId);
    if (request.masterId !== undefined) await naming.master(call, request.masterId, refused);
  };
  return {
    grantOrganizationDelegation: ofOrganization,
    revokeOrganizationDelegation: ofOrganization,
    listOrganizationDelegations: ofOrganization,
    grantMasterDelegation: ofMaster,
    revokeMasterDelegation: ofMaster,
    listMasterDelegations: ofMaster,
    getDelegationSnapshot: ofScope,
    getDelegationProof: ofScope,
  };
}

export function webhookNames(naming: LedgerNaming) {
  const byId = (request: { readonly id: string }, call: Call) => naming.subscription(call, request.id);
  return {
    deleteWebhook: byId,
    listWebhookDeliveries: byId,
    testWebhook: byId,
    redeliverWebhook: byId,
  };
}

interface OfOrganization {
  readonly organizationId: string;
}

interface OfScope {
  readonly organizationId?: string | undefined;
  readonly masterId?: string | undefined;
}
