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

/**
 * What an actor signs for each call that carries the signature of an event. The signed forms are those of the domain,
 * so that client and service cannot differ.
 */

async function createMasterInput(request: Request<CreateMasterRequest>): Promise<SigningInput> {
  const { ledgerId, businessRef, scope } = request;
  const [canonical] = masterCreatedSignedForms(ledgerId, businessRef, scope);
  return { eventType: 'TRACELEDGER_MASTER_CREATED', ledgerId, canonical };
}

/** What an append signs: the payload with the fields that the service injects. */
export async function appendEventInput(request: Request<AppendEventRequest>, facts: Facts): Promise<SigningInput> {
  const master = await facts.master(request.uuid);
  const ledger = await facts.ledger(master.ledgerId);
  const canonical = canonicalJson({ ...request.payload, ...injectedFields(ledger, master) });
  return { eventType: request.eventType, ledgerId: master.ledgerId, canonical };
}

async function closeMasterInput(request: Request<CloseMasterRequest>, facts: Facts): Promise<SigningInput> {
  const { ledgerId } = await facts.master(request.uuid);
  const [canonical] = masterClosedSignedForms(await facts.ledger(ledgerId), request.uuid, await facts.caller());
  return { eventType: 'MASTER_CLOSED', ledgerId, canonical };
}

async function closeLedgerInput(
  request: Request<CloseLedgerRequest> | Request<CloseEngagementRequest>,
  facts: Facts,
): Promise<SigningInput> {
  const { ledgerId } = request;
  const [canonical] = ledgerClosedSignedForms(await facts.ledger(ledgerId), await facts.caller());
  return { eventType: 'LEDGER_CLOSED', ledgerId, canonical };
}

/** `rootLedgerId` finds the root ledger of the entity that the request names. */
async function closeRootLedgerInput(
  request: Request<CloseRootLedgerRequest>,
  facts: Facts,
  rootLedgerId: (actorId: string) => Promise<string>,
): Promise<SigningInput> {
  return closeLedgerInput({ ledgerId: await rootLedgerId(request.actorId) }, facts);
}

interface GrantRequest {
  readonly delegateActorId: string;
  readonly role: string;
  readonly permissions?: JsonObject | undefined;
}

/** `ledgerId` is the organization's root ledger, the ledger that is granted, or the ledger of the master. */
function grantInput(scope: GrantScope, id: string, ledgerId: string, request: GrantRequest): SigningInput {
  const canonical = canonicalJson({
    ...grantObject(scope, id),
    delegate_actor_id: request.delegateActorId,
    role: request.role,
    permissions: request.permissions ?? {},
  });
  return { eventType: grantedType[scope], ledgerId, canonical };
}

function revokeInput(scope: GrantScope, id: string, ledgerId: string, delegateActorId: string): SigningInput {
  const canonical = canonicalJson({ ...grantObject(scope, id), delegate_actor_id: delegateActorId });
  return { eventType: revokedType[scope], ledgerId, canonical };
}

/** What a grant of access signs: the access as it is requested. `expires_at` is left out if it is not sent. */
async function grantMasterAccessInput(request: Request<GrantMasterAccessRequest>, facts: Facts): Promise<SigningInput> {
  const { ledgerId } = await facts.master(request.uuid);
  const canonical = canonicalJson({
    ...grantObject('master', request.uuid),
    delegate_actor_id: request.actorId,
    access: request.access,
    ...(request.expiresAt ? { expires_at: request.expiresAt } : {}),
  });
  return { eventType: grantedType.master, ledgerId, canonical };
}

/** Look-ups that signing needs beside Facts. They are not cached. */
interface SigningLookups {
  rootLedgerId(actorId: string): Promise<string>;
}

/** What is signed for a call, by the method's name. Returns null for a call that carries no signature of an event. */
export async function eventSigningInput(
  name: string,
  request: unknown,
  facts: Facts,
  lookups: SigningLookups,
): Promise<SigningInput | null> {
  switch (name) {
    case 'createMaster':
      return createMasterInput(request as Request<CreateMasterRequest>);
    case 'appendEvent':
      return appendEventInput(request as Request<AppendEventRequest>, facts);
    case 'closeMaster':
      return closeMasterInput(request as Request<CloseMasterRequest>, facts);
    case 'closeLedger':
    case 'closeEngagement':
      return closeLedgerInput(request as Request<CloseLedgerRequest>, facts);
    case 'closeRootLedger':
      return closeRootLedgerInput(request as Request<CloseRootLedgerRequest>, facts, lookups.rootLedgerId);
    case 'grantMasterAccess':
      return grantMasterAccessInput(request as Request<GrantMasterAccessRequest>, facts);
    case 'grantOrganizationDelegation': {
      const grant = request as Request<GrantOrganizationDelegationRequest>;
      return grantInput(
        'organization',
        grant.organizationId,
        await facts.organizationLedger(grant.organizationId),
        grant,
      );
    }
    case 'revokeOrganizationDelegation': {
      const { organizationId, delegateActorId } = request as Request<RevokeOrganizationDelegationRequest>;
      return revokeInput(
        'organization',
        organizationId,
        await facts.organizationLedger(organizationId),
        delegateActorId,
      );
    }
    case 'grantLedgerDelegation': {
      const grant = request as Request<GrantLedgerDelegationRequest>;
      return grantInput('ledger', grant.ledgerId, grant.ledgerId, grant);
    }
    case 'revokeLedgerDelegation': {
      const { ledgerId, delegateActorId } = request as Request<RevokeLedgerDelegationRequest>;
      return revokeInput('ledger', ledgerId, ledgerId, delegateActorId);
    }
    case 'grantMasterDelegation': {
      const grant = request as Request<GrantMasterDelegationRequest>;
      return grantInput('master', grant.masterId, (await facts.master(grant.masterId)).ledgerId, grant);
    }
    case 'revokeMasterDelegation': {
      const { masterId, delegateActorId } = request as Request<RevokeMasterDelegationRequest>;
      return revokeInput('master', masterId, (await facts.master(masterId)).ledgerId, delegateActorId);
    }
    default:
      return null;
  }
}
