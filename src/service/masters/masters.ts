import { masterFacts } from '../../domain/event/facts.ts';
import { names } from '../../domain/event/projection.ts';
import { masterClosedSignedForms, masterCreatedSignedForms } from '../../domain/event/service-events.ts';
import { checkLabel, checkName, checkUuid } from '../../domain/values/fields.ts';
import type { MasterService } from '../../gen/svc/v1/masters_pb.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { Identities } from '../actors/identities.ts';
import { checkCallSignature } from '../actors/signing.ts';
import { callerOf } from '../calls/caller.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { withNotFoundField } from '../calls/not-found-field.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import type { OnceSubmitter } from '../idempotency/submit-once.ts';
import { eventPageMessage, readEventPage } from '../reading/event-page.ts';
import { checkEventQuery } from '../reading/event-query.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import type { SealCheck } from '../reading/seal-check.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import { appendedMessage, type EventAppender } from './append-event.ts';
import { checkMasterQuery, readMasterPage } from './master-list.ts';

export function masterService(
  store: LedgerStore,
  identities: Identities,
  reading: LedgerReading,
  appender: EventAppender,
  seals: SealCheck,
  commands: OnceSubmitter,
) {
  return {
    createMaster: async (request, call) => {
      const caller = callerOf(call);
      const ledgerId = checkUuid('ledger_id', request.ledgerId);
      const businessRef = checkName('business_ref', request.businessRef);
      const scope = checkLabel('scope', request.scope);
      const outcome = await commands.submitOnce(
        call,
        { ledgerOf: async () => ledgerId, isSignedEvent: true },
        async () => {
          await withNotFoundField('ledger_id', reading.wholeLedger(call.walk, ledgerId, caller.actorId));
          const eventType = 'TRACELEDGER_MASTER_CREATED';
          const forms = masterCreatedSignedForms(ledgerId, businessRef, scope);
          const input = { eventType, ledgerId, forms, isAllSent: true } as const;
          const signature = await checkCallSignature(identities, call, 'if_keyed', input);
          const made = { ledgerId, masterId: call.newId(), businessRef, scope };
          return { kind: 'create_master', ...made, signature, signatureRule: 'if_keyed' };
        },
      );
      const made = masterFacts(outcome.event);
      const ledger = await afterPartialWrite(reading.ledgerFacts(ledgerId));
      return {
        uuid: made.masterId,
        ledgerId,
        scope: made.scope,
        status: 'OPEN',
        ledgerType: ledger?.type ?? '',
        businessRef: made.businessRef,
        createdAt: made.createdAt,
      };
    },

    listMasters: async (request, call) => {
      const caller = callerOf(call);
      const ledgerId = checkUuid('ledger_id', request.ledgerId);
      const query = checkMasterQuery(request);
      const { masters } = await reading.visibleLedger(call.walk, ledgerId, caller.actorId);
      const { items, nextCursor } = await readMasterPage(call.walk, store, reading, ledgerId, masters, query);
      return { ledgerId, count: items.length, masters: items, ...(nextCursor === null ? {} : { nextCursor }) };
    },

    getMaster: async (request, call) => {
      const masterId = checkUuid('uuid', request.uuid);
      const { facts, ledger } = await reading.readableMaster(masterId, callerOf(call).actorId);
      return {
        uuid: masterId,
        ledgerId: ledger.ledgerId,
        businessRef: facts.businessRef,
        scope: facts.scope,
        status: await reading.masterStatus(facts),
        ledgerType: ledger.type,
        createdAt: facts.createdAt,
      };
    },

    appendEvent: async (request, call) => appendedMessage(await appender.append(call, request)),

    listMasterEvents: async (request, call) => {
      const masterId = checkUuid('uuid', request.uuid);
      const query = checkEventQuery(request);
      const { ledger } = await reading.readableMaster(masterId, callerOf(call).actorId);
      const source = { ledgerId: ledger.ledgerId, scopes: [names.masterEvents(masterId)], kind: 'master' } as const;
      const page = await readEventPage(boundedLedgers(call.walk, store), seals, source, query);
      return {
        masterUuid: masterId,
        ledgerId: ledger.ledgerId,
        ...eventPageMessage(page),
      };
    },

    closeMaster: async (request, call) => {
      const caller = callerOf(call);
      const masterId = checkUuid('uuid', request.uuid);
      const outcome = await commands.submitOnce(
        call,
        { ledgerOf: () => appender.findLedger(masterId), isSignedEvent: true },
        async () => {
          const { ledger } = await reading.readableMaster(masterId, caller.actorId);
          const { ledgerId } = ledger;
          const eventType = 'MASTER_CLOSED';
          const forms = masterClosedSignedForms(ledger, masterId, caller.actorId);
          const signature = await checkCallSignature(identities, call, 'if_keyed', { eventType, ledgerId, forms });
          return { kind: 'close_master', ledgerId, masterId, signature, signatureRule: 'if_keyed' };
        },
      );
      return { traceledgerMasterUuid: masterId, ledgerId: outcome.event.ledgerId, status: 'CLOSED' };
    },
  } satisfies Partial<HandlersOf<typeof MasterService>>;
}
