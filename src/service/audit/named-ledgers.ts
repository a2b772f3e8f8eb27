import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { type LedgerNaming, nameRootLedger } from './ledger-naming.ts';

/**
 * How methods without a `ledger_id` in their request name a ledger. A `ledger_id` is noted for all methods alike.
 * Methods that open a ledger name it when they open it (ledger-opening.ts), RedeliverWebhook names the event's ledger
 * once it is found (webhooks.ts), and AppendEvents names the ledgers of its events (append-stream.ts).
 */

interface OfObject {
  readonly organizationId?: string | undefined;
  readonly masterId?: string | undefined;
}

export function masterNames(naming: LedgerNaming) {
  const byUuid = (request: { readonly uuid: string }, call: Call, refused: boolean) =>
    naming.master(call, request.uuid, refused);
  return {
    getMaster: byUuid,
    appendEvent: byUuid,
    listMasterEvents: byUuid,
    followMasterEvents: byUuid,
    closeMaster: byUuid,
    grantMasterAccess: byUuid,
    listMasterAccess: byUuid,
    revokeMasterAccess: byUuid,
  };
}

export function proofNames(naming: LedgerNaming) {
  const byUuid = (request: { readonly uuid: string }, call: Call, refused: boolean) =>
    naming.master(call, request.uuid, refused);
  return { getMasterCheckpoint: byUuid, getMasterInclusion: byUuid, getMasterConsistency: byUuid };
}

export function organizationNames(naming: LedgerNaming) {
  return {
    getOrganization: (request: { readonly id: string }, call: Call) => naming.organization(call, request.id),
    enrichOrganization: (request: { readonly organizationId: string }, call: Call) =>
      naming.organization(call, request.organizationId),
  };
}

export function entityNames() {
  const ofActor = (request: { readonly actorId: string }, call: Call) => nameRootLedger(call, request.actorId);
  return {
    createRootLedger: (_request: object, call: Call) => nameRootLedger(call, callerOf(call).actorId),
    getRootLedger: ofActor,
    closeRootLedger: ofActor,
  };
}

export function delegationNames(naming: LedgerNaming) {
  const ofObject = async (request: OfObject, call: Call, refused: boolean) => {
    if (request.organizationId !== undefined) await naming.organization(call, request.organizationId);
    if (request.masterId !== undefined) await naming.master(call, request.masterId, refused);
  };
  return {
    grantOrganizationDelegation: ofObject,
    revokeOrganizationDelegation: ofObject,
    listOrganizationDelegations: ofObject,
    grantMasterDelegation: ofObject,
    revokeMasterDelegation: ofObject,
    listMasterDelegations: ofObject,
    getDelegationSnapshot: ofObject,
    getDelegationProof: ofObject,
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
