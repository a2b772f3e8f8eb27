import type { CommandOutcome } from '../../actors/inbox/outcome.ts';
import { invalidField } from '../../domain/errors.ts';
import { delegatesMax, type GrantScope } from '../../domain/event/grant.ts';
import { names } from '../../domain/event/projection.ts';
import { checkLimit, checkOffset, checkTime, checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type {
  GetDelegationProofRequest,
  GetDelegationSnapshotRequest,
  GrantLedgerDelegationRequest,
  GrantMasterDelegationRequest,
  GrantOrganizationDelegationRequest,
  ListLedgerDelegationsRequest,
  ListMasterDelegationsRequest,
  ListOrganizationDelegationsRequest,
  RevokeLedgerDelegationRequest,
  RevokeMasterDelegationRequest,
  RevokeOrganizationDelegationRequest,
} from '../../gen/svc/v1/delegation_pb.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { Call } from '../calls/call.ts';
import { checkOrder } from '../calls/list-page.ts';
import { withNotFoundField } from '../calls/not-found-field.ts';
import { eventPageMessage, readEventPage } from '../reading/event-page.ts';
import { checkEventQuery } from '../reading/event-query.ts';
import type { SealCheck } from '../reading/seal-check.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import { type Delegations, endedLink, type GrantFields, madeGrant } from './delegations.ts';
import { everyLink, heldAt, heldLinks, type Link } from './links.ts';

interface DelegateField {
  readonly delegateActorId: string;
}

interface ListFields {
  readonly includeRevoked?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly order?: string | undefined;
}

/** Methods for delegation: grant, revoke, list, snapshot and proof. */
export function delegationService(store: LedgerStore, delegations: Delegations, seals: SealCheck, now: () => number) {
  const list = async (scope: GrantScope, id: string, request: ListFields, call: Call) => {
    const page = {
      limit: checkLimit('limit', request.limit),
      offset: checkOffset('offset', request.offset),
      descending: checkOrder(request.order),
    };
    const object = await delegations.readable(call, scope, id);
    const at = isoTime(now());
    const ledgers = boundedLedgers(call.walk, store);
    const links = await (request.includeRevoked === true
      ? everyLink(ledgers, object, page)
      : heldLinks(ledgers, object, at, page));
    return { count: links.length, members: links.map((link) => linkMessage(link, heldAt(link, at))) };
  };
  // `field` is the request field that names the object. Errors about the object name it.
  const grant = (call: Call, scope: GrantScope, field: string, id: string, request: GrantFields) =>
    withNotFoundField(field, delegations.grant(call, scope, checkUuid(field, id), request));
  const revoke = (call: Call, scope: GrantScope, field: string, id: string, { delegateActorId }: DelegateField) =>
    withNotFoundField(field, delegations.revoke(call, scope, checkUuid(field, id), delegateActorId));

  return {
    grantOrganizationDelegation: async (request: GrantOrganizationDelegationRequest, call: Call) =>
      grantMessage(await grant(call, 'organization', 'organization_id', request.organizationId, request)),
    revokeOrganizationDelegation: async (request: RevokeOrganizationDelegationRequest, call: Call) =>
      endedLink(await revoke(call, 'organization', 'organization_id', request.organizationId, request)),
    listOrganizationDelegations: async (request: ListOrganizationDelegationsRequest, call: Call) => {
      const organizationId = checkUuid('organization_id', request.organizationId);
      return { organizationId, ...(await list('organization', organizationId, request, call)) };
    },

    grantLedgerDelegation: async (request: GrantLedgerDelegationRequest, call: Call) =>
      grantMessage(await grant(call, 'ledger', 'ledger_id', request.ledgerId, request)),
    revokeLedgerDelegation: async (request: RevokeLedgerDelegationRequest, call: Call) =>
      endedLink(await revoke(call, 'ledger', 'ledger_id', request.ledgerId, request)),
    listLedgerDelegations: async (request: ListLedgerDelegationsRequest, call: Call) => {
      const ledgerId = checkUuid('ledger_id', request.ledgerId);
      return { ledgerId, ...(await list('ledger', ledgerId, request, call)) };
    },

    grantMasterDelegation: async (request: GrantMasterDelegationRequest, call: Call) =>
      grantMessage(await grant(call, 'master', 'master_id', request.masterId, request)),
    revokeMasterDelegation: async (request: RevokeMasterDelegationRequest, call: Call) =>
      endedLink(await revoke(call, 'master', 'master_id', request.masterId, request)),
    listMasterDelegations: async (request: ListMasterDelegationsRequest, call: Call) => {
      const masterId = checkUuid('master_id', request.masterId);
      return { masterId, ...(await list('master', masterId, request, call)) };
    },

    getDelegationSnapshot: async (request: GetDelegationSnapshotRequest, call: Call) => {
      const { scope, name, id } = oneScope(request);
      const at = isoTime(request.at === undefined ? now() : checkTime('at', request.at));
      // Without a limit: as many as can be active at a time.
      const limit = request.limit === undefined ? delegatesMax : checkLimit('limit', request.limit);
      const offset = checkOffset('offset', request.offset);
      const descending = checkOrder(request.order);
      const object = await delegations.readable(call, scope, id);
      const links = await heldLinks(boundedLedgers(call.walk, store), object, at, { limit, offset, descending });
      return {
        scope: name,
        scopeId: id,
        snapshotAt: at,
        count: links.length,
        // A snapshot shows the past: each link was active then, even if it ended later.
        delegations: links.map(({ grant }) => linkMessage({ grant, endedAt: null }, true)),
      };
    },

    getDelegationProof: async (request: GetDelegationProofRequest, call: Call) => {
      const { scope, name, id } = oneScope(request);
      const query = checkEventQuery(request);
      const { ledgerId } = await delegations.readable(call, scope, id);
      const source = { ledgerId, scopes: [names.delegationEvents(scope, id)], kind: 'segment' } as const;
      const page = await readEventPage(boundedLedgers(call.walk, store), seals, source, query);
      return {
        scope: name,
        scopeId: id,
        ...eventPageMessage(page),
      };
    },
  };
}

/**
 * Returns the one scope that a snapshot or proof is asked for. `name` is the query parameter. Throws `invalid_argument`
 * unless exactly one is given.
 */
function oneScope(request: {
  readonly organizationId?: string | undefined;
  readonly ledgerId?: string | undefined;
  readonly masterId?: string | undefined;
}): { readonly scope: GrantScope; readonly name: string; readonly id: string } {
  const given = [
    { scope: 'organization', name: 'organization_id', id: request.organizationId },
    { scope: 'ledger', name: 'ledger_id', id: request.ledgerId },
    { scope: 'master', name: 'master_id', id: request.masterId },
  ] as const;
  const [one, ...others] = given.filter(({ id }) => id !== undefined);
  if (one?.id === undefined) {
    throw invalidField('ledger_id', 'given, or organization_id, or master_id: exactly one of them');
  }
  const [second] = others;
  if (second !== undefined) throw invalidField(second.name, `left out beside ${one.name}: exactly one scope`);
  return { scope: one.scope, name: one.name, id: checkUuid(one.name, one.id) };
}

function grantMessage(outcome: CommandOutcome) {
  const { linkId, delegateActorId, role, grantedAt } = madeGrant(outcome);
  return { linkId, delegateActorId, role, isActive: true, grantedAt };
}

function linkMessage({ grant, endedAt }: Link, isActive: boolean) {
  return {
    linkId: grant.linkId,
    delegateActorId: grant.delegateActorId,
    role: grant.role,
    permissions: grant.permissions,
    isActive,
    grantedAt: grant.grantedAt,
    revokedAt: endedAt ?? undefined,
    expiresAt: grant.expiresAt ?? undefined,
    grantedByActorId: grant.grantedByActorId,
    eventId: grant.eventId,
  };
}
