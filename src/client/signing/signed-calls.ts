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

/** What an append signs: the payload with the fields that the service injects. */
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

interface GrantRequest {
  readonly delegateActorId: string;
  readonly role: string;
  readonly permissions?: JsonObject | undefined;
}

async function grantInput(scope: GrantScope, id: string, request: GrantRequest, facts: Facts): Promise<SigningInput> {
  const canonical = canonicalJson({
    ...grantObject(scope, id),
    delegate_actor_id: request.delegateActorId,
    role: request.role,
    permissions: request.permissions ?? {},
  });
  return { eventType: grantedType[scope], ledgerId: await ledgerOf(scope, id, facts), canonical };
}

async function revokeInput(
  scope: GrantScope,
  id: string,
  { delegateActorId }: Pick<GrantRequest, 'delegateActorId'>,
  facts: Facts,
): Promise<SigningInput> {
  const canonical = canonicalJson({ ...grantObject(scope, id), delegate_actor_id: delegateActorId });
  return { eventType: revokedType[scope], ledgerId: await ledgerOf(scope, id, facts), canonical };
}

/**
 * What an actor signs for a call, by the method's name. Returns null for a call that carries no signature of an event.
 * The signed forms are those of the domain, so that client and service cannot differ.
 */
export async function eventSigningInput(name: string, request: unknown, facts: Facts): Promise<SigningInput | null> {
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
      // The access as it is requested. `expires_at` is left out if it is not sent.
      const { uuid, actorId, access, expiresAt } = request as Request<GrantMasterAccessRequest>;
      const expiry = expiresAt ? { expires_at: expiresAt } : {};
      const named = { ...grantObject('master', uuid), delegate_actor_id: actorId };
      const { ledgerId } = await facts.master(uuid);
      return { eventType: grantedType.master, ledgerId, canonical: canonicalJson({ ...named, access, ...expiry }) };
    }
    case 'grantOrganizationDelegation': {
      const grant = request as Request<GrantOrganizationDelegationRequest>;
      return grantInput('organization', grant.organizationId, grant, facts);
    }
    case 'revokeOrganizationDelegation': {
      const grant = request as Request<RevokeOrganizationDelegationRequest>;
      return revokeInput('organization', grant.organizationId, grant, facts);
    }
    case 'grantLedgerDelegation': {
      const grant = request as Request<GrantLedgerDelegationRequest>;
      return grantInput('ledger', grant.ledgerId, grant, facts);
    }
    case 'revokeLedgerDelegation': {
      const grant = request as Request<RevokeLedgerDelegationRequest>;
      return revokeInput('ledger', grant.ledgerId, grant, facts);
    }
    case 'grantMasterDelegation': {
      const grant = request as Request<GrantMasterDelegationRequest>;
      return grantInput('master', grant.masterId, grant, facts);
    }
    case 'revokeMasterDelegation': {
      const grant = request as Request<RevokeMasterDelegationRequest>;
      return revokeInput('master', grant.masterId, grant, facts);
    }
    default:
      return null;
  }
}
