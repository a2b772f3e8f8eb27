import { invalidField, LedgerError, notFound } from '../../domain/errors.ts';
import { WEBHOOK_SECRET_BYTES, webhookSecret } from '../../domain/keys/webhook-signature.ts';
import { checkEventType, checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { CreateWebhookRequest, WebhookService } from '../../gen/svc/v1/webhooks_pb.ts';
import { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { checkNotEnded, type KeyedMutex } from '../../store/keyed-mutex.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { checkListPage } from '../calls/list-page.ts';
import { withNotFoundField } from '../calls/not-found-field.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import type { SecretBox } from '../records/secret-box.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import { answeredSeqsIn } from './answered-seqs.ts';
import { deliveriesIn } from './deliveries.ts';
import { type DeliveryRecord, dueAtOnce } from './delivery-record.ts';
import { seqsToStartAfter } from './start-seqs.ts';
import { type SubscriptionRecord, secretContext, subscriptionsIn } from './subscription-record.ts';
import { deliveryMessage, subscriptionMessage } from './webhook-message.ts';
import { checkTarget, type TargetPolicy } from './webhook-target.ts';
import type { WebhookWork } from './webhook-work.ts';

/** Active subscriptions of one actor: each of them examines every event of the actor's ledgers. */
export const subscriptionsPerActorMax = 1_000;
export const eventTypesMax = 100;
/** From half of SUBSCRIPTIONS_MAX on, an actor has at most this part of the free places, rounded up. */
export const partOfFree = 16;

export function webhookService(
  records: RecordStore,
  ledgers: LedgerStore,
  reading: LedgerReading,
  secrets: SecretBox,
  policy: TargetPolicy,
  work: WebhookWork,
  changes: KeyedMutex,
) {
  const subscriptions = subscriptionsIn(records);
  // No block is changed here, so none is kept.
  const deliveries = deliveriesIn(records, new MemoryBudget(0));
  const answeredSeqs = answeredSeqsIn(records);

  const owned = async (call: Call, id: string): Promise<SubscriptionRecord> => {
    const subscription = await subscriptions.get(checkUuid('id', id));
    if (subscription?.actorId !== callerOf(call).actorId) throw notFound('webhook subscription', 'id');
    return subscription;
  };

  const inForce = async (call: Call, id: string): Promise<SubscriptionRecord> => {
    const subscription = await owned(call, id);
    if (subscription.endedAt === null) return subscription;
    throw hasEnded();
  };

  /** null: the actor may make one more. Actors that create at once may each take the last place of the node. */
  const refusalOfOneMore = async (actorId: string): Promise<LedgerError | null> => {
    if (await subscriptions.hasInForce(actorId, subscriptionsPerActorMax)) return tooManyOfActor();
    const { known, max } = work.subscriptionCount();
    const free = max - known;
    if (free > max / 2) return null;
    const hasRoom = free > 0 && !(await subscriptions.hasInForce(actorId, Math.ceil(free / partOfFree)));
    return hasRoom ? null : tooManyOfNode(max);
  };

  /** `id`: of the subscription that needs the room. */
  const demandRoom = async (actorId: string, id: string): Promise<void> => {
    const refusal = await refusalOfOneMore(actorId);
    // Another run of the same call may have taken the last room.
    if (refusal !== null && (await subscriptions.get(id)) === null) throw refusal;
  };

  /**
   * Runs one creation of an actor at a time. Otherwise calls that run at once could all find the last room. Those that
   * wait have read and written nothing, and take no place among the reads.
   */
  const alone = <T>(create: () => Promise<T>, call: Call): Promise<T> =>
    changes.take(`webhook subscriptions of ${callerOf(call).actorId}`, 'write', create, { signal: call.signal });

  /** Checks the fields of a creation. Returns the function that makes the subscription. */
  const creation = (request: CreateWebhookRequest, call: Call, id: string, secret: string) => {
    const { actorId } = callerOf(call);
    const url = checkTarget('url', request.url, policy);
    const eventTypes = checkEventTypes(request.eventTypes);
    const ledgerId = request.ledgerId === undefined ? null : checkUuid('ledger_id', request.ledgerId);
    return async (): Promise<SubscriptionRecord> => {
      // Another run of the call may have made it meanwhile. The seqs of that run hold, even if there were none.
      const earlier = await subscriptions.get(id);
      if (earlier !== null) return subscriptions.create(earlier);
      if (ledgerId !== null) await withNotFoundField('ledger_id', reading.visibleLedger(call.walk, ledgerId, actorId));
      await demandRoom(actorId, id);
      const answered = await seqsToStartAfter(boundedLedgers(call.walk, ledgers), work, actorId, ledgerId);
      checkNotEnded(call.signal);
      // Stored before any node can find the subscription.
      if (Object.keys(answered).length > 0) await answeredSeqs.keep(id, answered, call.now);
      const sealedSecret = secrets.seal(Buffer.from(secret), secretContext(id));
      const target = { url, eventTypes, ledgerId };
      const createdAt = isoTime(call.now);
      return subscriptions.create({ id, actorId, ...target, createdAt, sealedSecret, endedAt: null, endedBy: null });
    };
  };

  const queue = async (call: Call, delivery: DeliveryRecord) => {
    try {
      await deliveries.create(delivery);
    } finally {
      // Also after a failure: the delivery may be recorded, and a single node does not look for deliveries by itself.
      work.queued(delivery.subscriptionId);
    }
    const stored = await afterPartialWrite(deliveries.get(call.walk, delivery.subscriptionId, delivery.id));
    return { delivery: deliveryMessage(stored ?? delivery, null) };
  };

  return {
    createWebhook: async (request, call) => {
      const id = call.newId();
      const secret = webhookSecret(call.randomBytes(WEBHOOK_SECRET_BYTES));
      // A retry gets the subscription of an earlier run, whatever would refuse it now: only this answer has the secret.
      const earlier = await subscriptions.get(id);
      const made = await (earlier === null
        ? alone(creation(request, call, id, secret), call)
        : subscriptions.create(earlier));
      if (made.endedAt === null) work.subscribed(made);
      return { ...subscriptionMessage(made), secret, note: 'Store this secret now: it is not shown again.' };
    },

    listWebhooks: async (request, call) => {
      const found = await subscriptions.ofActor(call.walk, callerOf(call).actorId, checkListPage(request));
      return { count: found.length, subscriptions: found.map(subscriptionMessage) };
    },

    deleteWebhook: async (request, call) => {
      const { id } = await owned(call, request.id);
      const at = isoTime(call.now);
      let wasInForce: boolean;
      try {
        wasInForce = await subscriptions.end(id, at, 'owner');
      } catch (error) {
        if (error instanceof LedgerError && error.code === 'outcome_unknown') work.mayHaveEnded(id, at);
        throw error;
      }
      // Also if it had ended before: the call that ended it may have failed before this line.
      work.ended(id);
      if (!wasInForce) throw hasEnded();
      return {};
    },

    listWebhookDeliveries: async (request, call) => {
      const page = checkListPage(request);
      const subscription = await owned(call, request.id);
      const found = await deliveries.ofSubscription(call.walk, subscription.id, page);
      return {
        subscriptionId: subscription.id,
        count: found.length,
        deliveries: found.map((delivery) => deliveryMessage(delivery, subscription.endedAt)),
      };
    },

    testWebhook: async (request, call) => {
      const subscription = await inForce(call, request.id);
      const ping = { eventId: call.newId(), eventType: 'PING', place: null, eventCreatedAt: isoTime(call.now) };
      return queue(call, { ...asked(call, subscription.id), ...ping });
    },

    redeliverWebhook: async (request, call) => {
      const deliveryId = checkUuid('delivery_id', request.deliveryId);
      const subscription = await inForce(call, request.id);
      const first = await deliveries.get(call.walk, subscription.id, deliveryId);
      if (first?.subscriptionId !== subscription.id) throw notFound('delivery', 'delivery_id');
      const { eventId, eventType, place, eventCreatedAt } = first;
      if (place !== null) call.named(place.ledgerId);
      return queue(call, { ...asked(call, subscription.id), eventId, eventType, place, eventCreatedAt });
    },
  } satisfies Partial<HandlersOf<typeof WebhookService>>;
}

function tooManyOfActor(): LedgerError {
  const message = `An actor has at most ${subscriptionsPerActorMax} subscriptions: delete one first.`;
  return new LedgerError('invalid_argument', message, { limit: subscriptionsPerActorMax });
}

function tooManyOfNode(max: number): LedgerError {
  const message =
    `All actors together have at most ${max} webhook subscriptions, and none of the free places is for this actor: ` +
    'delete one first, or retry later.';
  return new LedgerError('overloaded', message, { bound: 'SUBSCRIPTIONS_MAX' });
}

function hasEnded(): LedgerError {
  return new LedgerError('not_found', 'This webhook subscription has ended: make a new one.', { field: 'id' });
}

function asked(call: Call, subscriptionId: string) {
  return { id: call.newId(), subscriptionId, origin: 'owner', ...dueAtOnce(isoTime(call.now)) } as const;
}

function checkEventTypes(given: readonly string[]): string[] {
  if (given.length > eventTypesMax) throw invalidField('event_types', `at most ${eventTypesMax} event types`);
  return [...new Set(given.map((eventType, at) => checkEventType(`event_types[${at}]`, eventType)))];
}
