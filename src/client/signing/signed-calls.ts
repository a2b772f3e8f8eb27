import type { GrantScope } from '../../domain/event/grant.ts';
import {
  grantedType,
  grantObject,
  injectedFields,
  ledgerClosedSignedForms,
  masterClosedSignedForms,
  masterCreatedSignedForms,
  revokedType,
} from '../../domain/event/service-events.ts';
import { canonicalJson } from '../../domain/json/canonical.ts';
import type {
  GrantLedgerDelegationRequest,
  GrantMasterDelegationRequest,
  GrantOrganizationDelegationRequest,
  RevokeLedgerDelegationRequest,
  RevokeMasterDelegationRequest,
  RevokeOrganizationDelegationRequest,
} from '../../gen/svc/v1/delegation_pb.ts';
import type { CloseEngagementRequest } from '../../gen/svc/v1/engagements_pb.ts';
import type { CloseRootLedgerRequest } from '../../gen/svc/v1/entities_pb.ts';
import type { CloseLedgerRequest } from '../../gen/svc/v1/ledgers_pb.ts';
import type {
  AppendEventRequest,
  CloseMasterRequest,
  CreateMasterRequest,
  GrantMasterAccessRequest,
} from '../../gen/svc/v1/masters_pb.ts';
import type { JsonObject, Request } from '../shapes.ts';
import type { Facts } from './facts.ts';
import type { SigningInput } from './signing.ts';

export async function appendEventInput(request: Request<AppendEventRequest>, facts: Facts): Promise<SigningInput> {
  const master = await facts.master(request.uuid);
  const ledger = await facts.ledger(master.ledgerId);
  const canonical = canonicalJson({ ...request.payload, ...injectedFields(ledger, master) });
  return { eventType: request.eventType, ledgerId: master.ledgerId, canonical };
}

async function closeLedgerInput(ledgerId: string, facts: Facts): Promise<SigningInput> {
  const [canonical] = ledgerClosedSignedForms(await facts.ledger(ledgerId), await facts.caller());
  return { eventType: 'LEDGER_CLOSED', ledgerId, canonical };
}

/** The ledger that grants of a scope are written to. */
async function ledgerOf(scope: GrantScope, id: string, facts: Facts): Promise<string> {
  if (scope === 'ledger') return id;
  return scope === 'master' ? (await facts.master(id)).ledgerId : facts.organizationLedger(id);
}

interface DelegationRequest {
  readonly delegateActorId: string;
  /** Of a grant only, as are `permissions`. */
  readonly role?: string;
  readonly permissions?: JsonObject | undefined;
}

async function delegationInput(
  isGrant: boolean,
  scope: GrantScope,
  id: string,
  { delegateActorId, role, permissions }: DelegationRequest,
  facts: Facts,
): Promise<SigningInput> {
  const named = { ...grantObject(scope, id), delegate_actor_id: delegateActorId };
  const canonical = canonicalJson(isGrant ? { ...named, role, permissions: permissions ?? {} } : named);
  const eventType = (isGrant ? grantedType : revokedType)[scope];
  return { eventType, ledgerId: await ledgerOf(scope, id, facts), canonical };
}

/**
 * What an actor signs for a call, by the method's name. Returns null for a call that carries no signature of an event.
 * The domain makes the signed forms, so client and service cannot differ.
 */
export async function eventSigningInput(name: string, request: unknown, facts: Facts): Promise<SigningInput | null> {
  const isGrant = name.startsWith('grant');
  switch (name) {
    case 'createMaster': {
      const { ledgerId, businessRef, scope } = request as Request<CreateMasterRequest>;
      const [canonical] = masterCreatedSignedForms(ledgerId, businessRef, scope);
      return { eventType: 'TRACELEDGER_MASTER_CREATED', ledgerId, canonical };
    }
    case 'appendEvent':
      return appendEventInput(request as Request<AppendEventRequest>, facts);
    case 'closeMaster': {
      const { uuid } = request as Request<CloseMasterRequest>;
      const { ledgerId } = await facts.master(uuid);
      const [canonical] = masterClosedSignedForms(await facts.ledger(ledgerId), uuid, await facts.caller());
      return { eventType: 'MASTER_CLOSED', ledgerId, canonical };
    }
    case 'closeLedger':
    case 'closeEngagement':
      return closeLedgerInput((request as Request<CloseLedgerRequest | CloseEngagementRequest>).ledgerId, facts);
    case 'closeRootLedger':
      return closeLedgerInput(await facts.rootLedger((request as Request<CloseRootLedgerRequest>).actorId), facts);
    case 'grantMasterAccess': {
      const { uuid, actorId, access, expiresAt } = request as Request<GrantMasterAccessRequest>;
      const expiry = expiresAt ? { expires_at: expiresAt } : {};
      const named = { ...grantObject('master', uuid), delegate_actor_id: actorId };
      const { ledgerId } = await facts.master(uuid);
      return { eventType: grantedType.master, ledgerId, canonical: canonicalJson({ ...named, access, ...expiry }) };
    }
    case 'grantOrganizationDelegation':
    case 'revokeOrganizationDelegation': {
      const grant = request as Request<GrantOrganizationDelegationRequest | RevokeOrganizationDelegationRequest>;
      return delegationInput(isGrant, 'organization', grant.organizationId, grant, facts);
    }
    case 'grantLedgerDelegation':
    case 'revokeLedgerDelegation': {
      const grant = request as Request<GrantLedgerDelegationRequest | RevokeLedgerDelegationRequest>;
      return delegationInput(isGrant, 'ledger', grant.ledgerId, grant, facts);
    }
    case 'grantMasterDelegation':
    case 'revokeMasterDelegation': {
      const grant = request as Request<GrantMasterDelegationRequest | RevokeMasterDelegationRequest>;
      return delegationInput(isGrant, 'master', grant.masterId, grant, facts);
    }
    default:
      return null;
  }
}
