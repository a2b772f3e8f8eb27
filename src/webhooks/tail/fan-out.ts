import type { LedgerEvent } from '../../domain/event/event.ts';
import type { LedgerFacts } from '../../domain/event/facts.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { BackgroundLimiter } from '../../runtime/background-limiter.ts';
import type { AnsweredSeqs } from '../../service/webhooks/answered-seqs.ts';
import type { Deliveries } from '../../service/webhooks/deliveries.ts';
import type { DeliveryRange } from '../../service/webhooks/delivery-blocks.ts';
import { type DeliveryRecord, deliveryIdOf, dueAtOnce } from '../../service/webhooks/delivery-record.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { type EventRange, nextCommitDates } from './event-range.ts';
import { isWithin, type ReadSpan, readSpans } from './read-spans.ts';
import { type SubscriptionStart, startOf } from './subscription-start.ts';

/** Their deliveries of a range are in memory, and their blocks are on the way to the store. */
const subscriptionsAtOnce = 64;
/** Main thread time, measured: looking at an event, making a delivery, and writing a block with its look-ups. */
const eventCostMs = 0.0005;
const deliveryCostMs = 0.005;
const blockCostMs = 0.15;
/** After so much work on the main thread other work comes first. */
const sliceMs = 3;

export interface FanOutParts {
  readonly ledgers: LedgerStore;
  readonly deliveries: Deliveries;
  readonly answeredSeqs: Pick<AnsweredSeqs, 'of'>;
  readonly limiter: BackgroundLimiter;
  now(): number;
  ownsShardOf(ledgerId: string): boolean;
  /** null if there is no such ledger. */
  facts(ledgerId: string): Promise<LedgerFacts | null>;
  fannedOut(deliveries: number): void;
}

/**
 * Records the deliveries of a range, to those of the subscriptions whose owners could read the events when they were
 * written. Returns the ids of the subscriptions that have deliveries, or null if another node has taken the ledger
 * over.
 *
 * The recorded range of a subscription begins where `range` does, whichever other subscriptions there are. So records
 * from before a crash are found again.
 */
export async function fanOut(
  parts: FanOutParts,
  range: EventRange,
  subscriptions: readonly SubscriptionRecord[],
): Promise<ReadonlySet<string> | null> {
  const { ledgerId, fromSeq, throughSeq, events } = range;
  const createdAt = isoTime(parts.now());
  const spansOf = await accessOf(parts, range);
  const hasBegun = beginningOf(parts, range);
  const woken = new Set<string>();
  const recording = new Recording(parts);
  for (let at = 0; at < subscriptions.length; at += subscriptionsAtOnce) {
    for (const subscription of subscriptions.slice(at, at + subscriptionsAtOnce)) {
      await recording.spend(events.length * eventCostMs);
      if (!parts.ownsShardOf(ledgerId)) {
        await recording.end();
        return null;
      }
      const start = startOf(subscription);
      const deliveries: DeliveryRecord[] = [];
      for (const event of events) {
        if (!asksFor(subscription, event)) continue;
        const begun = hasBegun(start, event);
        if (!(typeof begun === 'boolean' ? begun : await begun)) continue;
        const spans = spansOf(subscription.actorId, event.master?.id ?? null);
        if (!isWithin(spans instanceof Promise ? await spans : spans, event)) continue;
        deliveries.push(newDelivery(subscription, event, createdAt));
      }
      if (deliveries.length === 0) continue;
      recording.begin({ subscriptionId: subscription.id, ledgerId, fromSeq, throughSeq, deliveries });
      woken.add(subscription.id);
    }
    await recording.end();
  }
  return woken;
}

function asksFor({ eventTypes }: SubscriptionRecord, event: LedgerEvent): boolean {
  return eventTypes.length === 0 || eventTypes.includes(event.eventType);
}

/** `now`: when the delivery is recorded, ISO. */
function newDelivery(subscription: SubscriptionRecord, event: LedgerEvent, now: string): DeliveryRecord {
  return {
    id: deliveryIdOf(subscription.id, event),
    subscriptionId: subscription.id,
    eventId: event.id,
    eventType: event.eventType,
    place: { ledgerId: event.ledgerId, seq: event.seq },
    eventCreatedAt: event.createdAt,
    origin: 'log',
    ...dueAtOnce(now),
  };
}

/** Records ranges of deliveries, in slices of the main thread's time. */
class Recording {
  readonly #parts: FanOutParts;
  #writes: Promise<number>[] = [];
  #costMs = 0;

  constructor(parts: FanOutParts) {
    this.#parts = parts;
  }

  begin(range: DeliveryRange): void {
    this.#costMs += blockCostMs + range.deliveries.length * deliveryCostMs;
    const write = this.#parts.deliveries.record(range);
    // `end` throws it. Until then other work may come first.
    write.catch(() => {});
    this.#writes.push(write);
  }

  /** Call it before work of this cost, main thread time in ms. Other work comes first if this slice is used up. */
  async spend(costMs: number): Promise<void> {
    if (this.#costMs >= sliceMs) await this.#waitForLimiter();
    this.#costMs += costMs;
  }

  /** Resolves when all ranges are stored. */
  async end(): Promise<void> {
    const written = await Promise.all(this.#writes.splice(0));
    this.#parts.fannedOut(written.reduce((sum, one) => sum + one, 0));
    await this.#waitForLimiter();
  }

  #waitForLimiter(): Promise<void> {
    const costMs = this.#costMs;
    this.#costMs = 0;
    return this.#parts.limiter.take(costMs);
  }
}

/** Whether an event may have been answered after a subscription was made. */
function beginningOf(
  { ledgers, answeredSeqs }: FanOutParts,
  range: EventRange,
): (start: SubscriptionStart, event: LedgerEvent) => boolean | Promise<boolean> {
  const nextCommitDate = nextCommitDates(ledgers, range);
  const answered = new Map<string, number>();
  const answeredSeq = async (subscriptionId: string) => {
    const seq = answered.get(subscriptionId) ?? (await answeredSeqs.of(subscriptionId, range.ledgerId));
    answered.set(subscriptionId, seq);
    return seq;
  };
  const mayBeLater = async ({ subscriptionId, newestFrom }: SubscriptionStart, event: LedgerEvent) => {
    if (event.seq <= (await answeredSeq(subscriptionId))) return false;
    if (event.createdAt >= newestFrom) return true;
    const next = await nextCommitDate(event);
    return next === null || next >= newestFrom;
  };
  return (start, event) => {
    if (event.createdAt < start.from) return false;
    return event.createdAt > start.through || mayBeLater(start, event);
  };
}

type Spans = readonly ReadSpan[];

/** In which spans an actor could read; computed once a range for each actor and master. */
async function accessOf(
  parts: FanOutParts,
  range: EventRange,
): Promise<(actorId: string, masterId: string | null) => Spans | Promise<Spans>> {
  const ledger = await parts.facts(range.ledgerId);
  if (ledger === null) return () => [];
  const readable = readSpans(parts, ledger, range);
  const known = new Map<string, Spans>();
  return (actorId, masterId) => {
    const key = `${actorId}|${masterId ?? ''}`;
    const answer = known.get(key);
    if (answer !== undefined) return answer;
    return readable(actorId, masterId).then((spans) => {
      known.set(key, spans);
      return spans;
    });
  };
}
