import { checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { ListAccessEventsRequest } from '../../gen/svc/v1/audit_pb.ts';
import { type AccessEvent, type AccessLog, accessKeptMs, accessTime } from '../../store/access-log.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { checkListPage } from '../calls/list-page.ts';
import { boundedAccesses } from '../walking/bounded-stores.ts';

/**
 * GET /audit/access: the caller's own access history. `flush` resolves when the records that wait on this node are
 * stored.
 */
export function auditService(log: AccessLog, flush: () => Promise<void>, now: () => number) {
  return {
    listAccessEvents: async (request: ListAccessEventsRequest, call: Call) => {
      const { actorId } = callerOf(call);
      const page = {
        ledgerId: request.ledgerId === undefined ? null : checkUuid('ledger_id', request.ledgerId),
        since: now() - accessKeptMs,
        ...checkListPage({ ...request, order: request.order ?? 'desc' }),
      };
      await flush();
      const events = await boundedAccesses(call.walk, log, actorId, page);
      return { count: events.length, accessEvents: events.map(accessMessage) };
    },
  };
}

function accessMessage(event: AccessEvent) {
  return {
    id: event.id,
    method: event.method,
    path: event.path,
    responseStatus: event.responseStatus,
    ledgerId: event.ledgerId ?? undefined,
    at: isoTime(accessTime(event.id)),
    apiKeyId: event.apiKeyId ?? undefined,
    requestId: event.requestId,
  };
}
