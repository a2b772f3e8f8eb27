import { type Grant, grantOf } from '../../domain/event/grant.ts';
import { mayRead } from '../../domain/ledger/permission.ts';
import { checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { MasterService } from '../../gen/svc/v1/masters_pb.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { callerOf } from '../calls/caller.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { checkListPage } from '../calls/list-page.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import type { Delegations } from './delegations.ts';
import { heldLinks } from './links.ts';

/** Methods for access to one master that may expire. */
export function masterAccess(store: LedgerStore, delegations: Delegations, reading: LedgerReading, now: () => number) {
  return {
    grantMasterAccess: async (request, call) => {
      const masterId = checkUuid('uuid', request.uuid);
      const { event } = await delegations.grantAccess(call, masterId, request);
      return accessMessage(masterId, grantOf(event));
    },

    listMasterAccess: async (request, call) => {
      const masterId = checkUuid('uuid', request.uuid);
      const page = checkListPage(request);
      const { actorId } = callerOf(call);
      const { ledger } = await reading.readableMaster(masterId, actorId);
      // A caller with no more than a grant of this master sees only its own grants.
      const ownOnly = !mayRead(await reading.ledgerAccess(ledger, actorId));
      const object = { scope: 'master', id: masterId } as const;
      const shown = (grant: Grant) => !ownOnly || grant.delegateActorId === actorId;
      const links = await heldLinks(boundedLedgers(call.walk, store), object, isoTime(now()), page, shown);
      return { count: links.length, access: links.map(({ grant }) => accessMessage(masterId, grant)) };
    },

    revokeMasterAccess: async (request, call) => {
      await delegations.revokeLink(call, checkUuid('uuid', request.uuid), request.linkId);
      return {};
    },
  } satisfies Partial<HandlersOf<typeof MasterService>>;
}

function accessMessage(masterId: string, grant: Grant) {
  const { linkId, delegateActorId, access, grantedAt, expiresAt } = grant;
  return { linkId, masterId, delegateActorId, access, isActive: true, grantedAt, expiresAt: expiresAt ?? undefined };
}
