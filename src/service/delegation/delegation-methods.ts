import type { CommandOutcome } from '../../actors/inbox/outcome.ts';
import { invalidField } from '../../domain/errors.ts';
import { delegatesMax, type GrantScope, grantOf } from '../../domain/event/grant.ts';
import { names } from '../../domain/event/projection.ts';
import { checkTime, checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { DelegationService, ListLedgerDelegationsRequest } from '../../gen/svc/v1/delegation_pb.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { Call } from '../calls/call.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { checkListPage } from '../calls/list-page.ts';
import { withNotFoundField } from '../calls/not-found-field.ts';
import { eventPageMessage, readEventPage } from '../reading/event-page.ts';
import { checkEventQuery } from '../reading/event-query.ts';
import type { SealCheck } from '../reading/seal-check.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import type { Delegations, GrantFields } from './delegations.ts';
import { everyLink, heldAt, heldLinks, type Link } from './links.ts';

type ListFields = Omit<ListLedgerDelegationsRequest, '$typeName' | '$unknown' | 'ledgerId'>;

/** Methods for delegation: grant, revoke, list, snapshot and proof. */
export function delegationService(store: LedgerStore, delegations: Delegations, seals: SealCheck, now: () => number) {
  const list = async (scope: GrantScope, id: string, request: ListFields, call: Call) => {
    const page = checkListPage(request);
    const object = await delegations.readable(call, scope, id);
    const at = isoTime(now());
    const ledgers = boundedLedgers(call.walk, store);
    const links = await (request.includeRevoked === true
      ? everyLink(ledgers, object, page)
      : heldLinks(ledgers, object, at, page));
    return { count: links.length, members: links.map((link) => linkMessage(link, heldAt(link, at))) };
  };

  const grant = async (call: Call, scope: GrantScope, id: string, request: GrantFields) => {
    const field = `${scope}_id`;
    const granting = delegations.grant(call, scope, checkUuid(field, id), request);
    const { linkId, delegateActorId, role, grantedAt } = grantOf((await withNotFoundField(field, granting)).event);
    return { linkId, delegateActorId, role, isActive: true, grantedAt };
  };

  const revoke = async (call: Call, scope: GrantScope, id: string, request: Pick<GrantFields, 'delegateActorId'>) => {
    const field = `${scope}_id`;
    const revoking = delegations.revoke(call, scope, checkUuid(field, id), request.delegateActorId);
    return endedLink(await withNotFoundField(field, revoking));
  };

  return {
    grantOrganizationDelegation: (request, call) => grant(call, 'organization', request.organizationId, request),
    revokeOrganizationDelegation: (request, call) => revoke(call, 'organization', request.organizationId, request),
    listOrganizationDelegations: async (request, call) => {
      const organizationId = checkUuid('organization_id', request.organizationId);
      return { organizationId, ...(await list('organization', organizationId, request, call)) };
    },

    grantLedgerDelegation: (request, call) => grant(call, 'ledger', request.ledgerId, request),
    revokeLedgerDelegation: (request, call) => revoke(call, 'ledger', request.ledgerId, request),
    listLedgerDelegations: async (request, call) => {
      const ledgerId = checkUuid('ledger_id', request.ledgerId);
      return { ledgerId, ...(await list('ledger', ledgerId, request, call)) };
    },

    grantMasterDelegation: (request, call) => grant(call, 'master', request.masterId, request),
    revokeMasterDelegation: (request, call) => revoke(call, 'master', request.masterId, request),
    listMasterDelegations: async (request, call) => {
      const masterId = checkUuid('master_id', request.masterId);
      return { masterId, ...(await list('master', masterId, request, call)) };
    },

    getDelegationSnapshot: async (request, call) => {
      const { scope, name, id } = oneScope(request);
      const at = isoTime(request.at === undefined ? now() : checkTime('at', request.at));
      // Without a limit: as many as can be active at a time.
      const page = checkListPage({ ...request, limit: request.limit ?? delegatesMax });
      const object = await delegations.readable(call, scope, id);
      const links = await heldLinks(boundedLedgers(call.walk, store), object, at, page);
      return {
        scope: name,
        scopeId: id,
        snapshotAt: at,
        count: links.length,
        // A snapshot shows the past: each link was active then, even if it ended later.
        delegations: links.map(({ grant }) => linkMessage({ grant, endedAt: null }, true)),
      };
    },

    getDelegationProof: async (request, call) => {
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
  } satisfies Partial<HandlersOf<typeof DelegationService>>;
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
  const [one, second] = given.filter(({ id }) => id !== undefined);
  if (one?.id === undefined) {
    throw invalidField('ledger_id', 'given, or organization_id, or master_id: exactly one of them');
  }
  if (second !== undefined) throw invalidField(second.name, `left out beside ${one.name}: exactly one scope`);
  return { scope: one.scope, name: one.name, id: checkUuid(one.name, one.id) };
}

function endedLink({ event }: CommandOutcome) {
  const { link_id, delegate_actor_id, revoked_at } = JSON.parse(event.payload) as Readonly<Record<string, string>>;
  return { linkId: link_id ?? '', delegateActorId: delegate_actor_id ?? '', revokedAt: revoked_at ?? '' };
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
