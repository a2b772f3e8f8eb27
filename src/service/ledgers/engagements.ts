import { invalidField, LedgerError, notFound } from '../../domain/errors.ts';
import type { LedgerFacts } from '../../domain/event/facts.ts';
import { checkLabel, checkUuid } from '../../domain/values/fields.ts';
import type { EngagementService } from '../../gen/svc/v1/engagements_pb.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { Identities } from '../actors/identities.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { refuseOtherWorld } from '../calls/world-check.ts';
import { rootLedgerId } from '../entities/entities.ts';
import { entityRules } from '../entities/entity-record.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { collection } from '../records/collection.ts';
import type { LedgerClosing } from '../writing/ledger-closing.ts';
import { facts, type LedgerOpening } from '../writing/ledger-opening.ts';

export function engagementService(
  records: RecordStore,
  identities: Identities,
  open: LedgerOpening,
  reading: LedgerReading,
  close: LedgerClosing,
) {
  const entities = collection(records, entityRules);

  const readable = async (request: { readonly ledgerId: string }, call: Call): Promise<LedgerFacts> => {
    const ledgerId = checkUuid('ledger_id', request.ledgerId);
    return (await reading.wholeLedger(call.walk, ledgerId, callerOf(call).actorId, 'ENGAGEMENT')).facts;
  };

  const isOpen = async (ledgerId: string) => (await reading.ledgerFacts(ledgerId)) !== null;

  const message = async (ledger: LedgerFacts) => ({
    ledgerId: ledger.ledgerId,
    primaryActorId: ledger.primaryActorId ?? '',
    counterpartyActorId: ledger.counterpartyActorId ?? '',
    ledgerType: ledger.type,
    purpose: ledger.purpose ?? '',
    status: await reading.ledgerStatus(ledger.ledgerId),
  });

  return {
    createEngagement: async (request, call) => {
      const caller = callerOf(call);
      const counterpartyActorId = checkUuid('counterparty_actor_id', request.counterpartyActorId);
      const purpose = checkLabel('purpose', request.purpose);
      if (counterpartyActorId === caller.actorId)
        throw invalidField('counterparty_actor_id', 'another actor than the caller');
      const counterparty = await identities.recentOther(counterpartyActorId);
      if (counterparty === null) throw notFound('actor', 'counterparty_actor_id');
      refuseOtherWorld(caller.world, counterparty.world, 'counterparty_actor_id');
      const ledgerId = call.newId();
      const entity = (await entities.get(caller.actorId))?.value ?? null;
      // A retry finds the ledger that an earlier run opened, even if a root ledger has become required since.
      if (entity?.requireArl === true && !(await isOpen(rootLedgerId(entity.actorId))) && !(await isOpen(ledgerId))) {
        throw new LedgerError(
          'arl_required',
          'This entity asks for a root ledger first: POST /entities/root-ledger, then retry.',
        );
      }
      const sides = { primaryActorId: caller.actorId, counterpartyActorId };
      const engagement = facts('ENGAGEMENT', { ...sides, purpose, entityId: entity?.entityId ?? null });
      const opened = await open(call, ledgerId, engagement);
      return afterPartialWrite(message(opened));
    },

    getEngagement: async (request, call) => message(await readable(request, call)),

    closeEngagement: async (request, call) => close(call, await readable(request, call), 'optional'),
  } satisfies Partial<HandlersOf<typeof EngagementService>>;
}
