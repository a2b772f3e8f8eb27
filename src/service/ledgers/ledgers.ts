import { invalidField, LedgerError, notFound } from '../../domain/errors.ts';
import { partialReaderScopes } from '../../domain/ledger/permission.ts';
import { checkActorUri, checkUuid } from '../../domain/values/fields.ts';
import type { CreateLedgerRequest, LedgerService } from '../../gen/svc/v1/ledgers_pb.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { Identities } from '../actors/identities.ts';
import type { Caller } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { checkIfGiven } from '../calls/given-fields.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { refuseOtherWorld } from '../calls/world-check.ts';
import { firstOrganizationOf, organizationCollection } from '../organizations/organization-record.ts';
import { type EventSource, eventPageMessage, readEventPage } from '../reading/event-page.ts';
import { checkEventQuery } from '../reading/event-query.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import type { SealCheck } from '../reading/seal-check.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import type { LedgerClosing } from '../writing/ledger-closing.ts';
import { facts, type LedgerOpening } from '../writing/ledger-opening.ts';
import { checkLedgerQuery, ledgerMessage, readLedgerPage } from './ledger-list.ts';

export function ledgerService(
  store: LedgerStore,
  records: RecordStore,
  identities: Identities,
  reading: LedgerReading,
  open: LedgerOpening,
  close: LedgerClosing,
  seals: SealCheck,
) {
  const organizations = organizationCollection(records);

  /** The organization of one side: the named one, which must belong to that actor, or the actor's first one if any. */
  const organizationOf = async (field: string, named: string | undefined, actorId: string): Promise<string | null> => {
    if (named === undefined) return (await firstOrganizationOf(organizations, actorId))?.organizationId ?? null;
    const held = await organizations.get(named);
    if (held?.value.actorId !== actorId) throw invalidField(field, 'an organization of that actor');
    return named;
  };

  return {
    createLedger: async (request, call) => {
      const caller = callerOf(call);
      const named = {
        buyer: checkIfGiven(checkUuid, 'buyer_organization_id', request.buyerOrganizationId),
        supplier: checkIfGiven(checkUuid, 'supplier_organization_id', request.supplierOrganizationId),
      };
      const { buyer, supplier, counterpartyField } = checkSides(request, caller);
      const counterparty = await identities.recentOther(buyer === caller.actorId ? supplier : buyer);
      if (counterparty === null) throw notFound('actor', counterpartyField);
      refuseOtherWorld(caller.world, counterparty.world, counterpartyField);
      const ledgerId = call.newId();
      const order = {
        buyerActorId: buyer,
        supplierActorId: supplier,
        buyerOrganizationId: await organizationOf('buyer_organization_id', named.buyer, buyer),
        supplierOrganizationId: await organizationOf('supplier_organization_id', named.supplier, supplier),
      };
      const opened = await open(call, ledgerId, facts('ORDER', order));
      return {
        id: ledgerId,
        buyerActorId: buyer,
        supplierActorId: supplier,
        status: 'OPEN',
        ledgerType: opened.type,
        buyerOrganizationId: opened.buyerOrganizationId ?? undefined,
        supplierOrganizationId: opened.supplierOrganizationId ?? undefined,
        createdAt: opened.createdAt,
      };
    },

    listLedgers: async (request, call) => {
      const { actorId } = callerOf(call);
      const query = checkLedgerQuery(request);
      const { items, nextCursor } = await readLedgerPage(call.walk, store, reading, actorId, query);
      return { actorId, count: items.length, ledgers: items, ...(nextCursor === null ? {} : { nextCursor }) };
    },

    getLedger: async (request, call) => {
      const ledgerId = checkUuid('ledger_id', request.ledgerId);
      const { facts: ledger } = await reading.visibleLedger(call.walk, ledgerId, callerOf(call).actorId);
      return ledgerMessage(ledger, await reading.ledgerStatus(ledgerId));
    },

    listLedgerEvents: async (request, call) => {
      const ledgerId = checkUuid('ledger_id', request.ledgerId);
      const query = checkEventQuery(request);
      const { masters } = await reading.visibleLedger(call.walk, ledgerId, callerOf(call).actorId);
      // Who may read the whole ledger may read each of its events.
      const source: EventSource =
        masters === null
          ? { ledgerId, scopes: null, kind: 'ledger' }
          : { ledgerId, scopes: partialReaderScopes(ledgerId, masters), kind: 'segment' };
      const page = await readEventPage(boundedLedgers(call.walk, store), seals, source, query);
      return {
        ledgerId,
        ...eventPageMessage(page),
      };
    },

    closeLedger: async (request, call) => {
      const ledgerId = checkUuid('ledger_id', request.ledgerId);
      const { facts: ledger } = await reading.wholeLedger(call.walk, ledgerId, callerOf(call).actorId);
      return close(call, ledger, 'if_keyed');
    },
  } satisfies Partial<HandlersOf<typeof LedgerService>>;
}

/**
 * Returns the buyer and the supplier of a new ledger. The caller must be one of them; the request names the other one.
 */
function checkSides(request: CreateLedgerRequest, caller: Caller) {
  const named = {
    buyer_svc_id: checkIfGiven(checkActorUri, 'buyer_svc_id', request.buyerSvcId),
    supplier_svc_id: checkIfGiven(checkActorUri, 'supplier_svc_id', request.supplierSvcId),
    buyer_actor_id: checkIfGiven(checkUuid, 'buyer_actor_id', request.buyerActorId),
    supplier_actor_id: checkIfGiven(checkUuid, 'supplier_actor_id', request.supplierActorId),
  };
  if (named.buyer_svc_id !== undefined && named.supplier_svc_id !== undefined) {
    throw invalidField('buyer_svc_id', 'left out beside supplier_svc_id: exactly one counterparty');
  }
  const buyer = oneSide('buyer', named.buyer_svc_id, named.buyer_actor_id);
  const supplier = oneSide('supplier', named.supplier_svc_id, named.supplier_actor_id);
  if (buyer === undefined && supplier === undefined) {
    throw invalidField('supplier_svc_id', 'given, or buyer_svc_id: exactly one counterparty');
  }
  const sides = { buyer: buyer ?? caller.actorId, supplier: supplier ?? caller.actorId };
  if (sides.buyer === sides.supplier) {
    const [twice, other] = supplier === undefined ? (['buyer', 'supplier'] as const) : (['supplier', 'buyer'] as const);
    throw invalidField(fieldOf(named, twice), `another actor than the ${other}`);
  }
  if (sides.buyer !== caller.actorId && sides.supplier !== caller.actorId) {
    throw new LedgerError('permission_denied', 'A ledger is opened by its buyer or by its supplier.');
  }
  const side = sides.buyer === caller.actorId ? 'supplier' : 'buyer';
  return { ...sides, counterpartyField: fieldOf(named, side) };
}

function fieldOf(named: { readonly [field: string]: string | undefined }, side: 'buyer' | 'supplier'): string {
  return named[`${side}_svc_id`] === undefined ? `${side}_actor_id` : `${side}_svc_id`;
}

function oneSide(side: string, byUri: string | undefined, byId: string | undefined): string | undefined {
  if (byUri !== undefined && byId !== undefined) {
    throw invalidField(`${side}_actor_id`, `left out beside ${side}_svc_id: name the actor once`);
  }
  return byUri ?? byId;
}
