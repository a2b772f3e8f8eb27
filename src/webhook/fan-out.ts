import type { LedgerEvent } from '../domain/event.ts';
import type { LedgerFacts } from '../domain/ledger-facts.ts';
import { isoTime } from '../domain/time.ts';
import type { Deliveries } from '../service/deliveries.ts';
import type { DeliveryRecord } from '../service/delivery-record.ts';
import type { SubscriptionRecord } from '../service/subscription-record.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import { asksFor, newDelivery } from './event-delivery.ts';
import { type EventRange, nextCommitDates } from './event-range.ts';
import type { Pace } from './pace.ts';
import { isWithin, type ReadSpan, readSpans } from './read-spans.ts';
import { type SubscriptionStart, startOf } from './subscription-start.ts';

/** Deliveries in memory at most: one event may have a thousand subscriptions. */
const deliveriesAtOnce = 4_096;
/** Blocks that are being written at most. */
const blocksAtOnce = 64;
/** Main thread, measured: making a delivery, and writing a block of them with its look-ups. */
const deliveryCostMs = 0.005;
const blockCostMs = 0.15;

export interface FanOutParts {
  readonly ledgers: LedgerStore;
  readonly deliveries: Deliveries;
  readonly pace: Pace;
  now(): number;
  facts(ledgerId: string): Promise<LedgerFacts | null>;
  /** New deliveries were recorded. */
  fannedOut(deliveries: number): void;
}

/**
 * Records the deliveries of a range to those of the subscriptions whose owners could read it as it was written; answers the subscriptions that
 * have some. Whether they may still read it is asked when it is sent.
 */
export async function fanOut(
  parts: FanOutParts,
  range: EventRange,
  subscriptions: readonly SubscriptionRecord[],
): Promise<ReadonlySet<string>> {
  const { ledgerId, throughSeq } = range;
  const createdAt = isoTime(parts.now());
  const spansOf = await accessOf(parts, range);
  const hasBegun = beginningOf(parts, range);
  const starting = subscriptions.map((subscription) => ({ subscription, start: startOf(subscription, ledgerId) }));
  const woken = new Set<string>();
  let fromSeq = range.fromSeq;
  let count = 0;
  const bySubscription = new Map<string, DeliveryRecord[]>();
  for (const [at, event] of range.events.entries()) {
    for (const { subscription, start } of starting) {
      if (!asksFor(subscription, event)) continue;
      const begun = hasBegun(start, event);
      if (!(typeof begun === 'boolean' ? begun : await begun)) continue;
      const spans = spansOf(subscription.actorId, event.master?.id ?? null);
      if (!isWithin(spans instanceof Promise ? await spans : spans, event)) continue;
      const own = bySubscription.get(subscription.id);
      const delivery = newDelivery(subscription, event, createdAt);
      if (own === undefined) bySubscription.set(subscription.id, [delivery]);
      else own.push(delivery);
      count += 1;
    }
    const isLast = at === range.events.length - 1;
    if (count < deliveriesAtOnce && !isLast) continue;
    const covered = { ledgerId, fromSeq, throughSeq: isLast ? throughSeq : event.seq };
    await record(parts, covered, bySubscription);
    for (const subscriptionId of bySubscription.keys()) woken.add(subscriptionId);
    bySubscription.clear();
    fromSeq = event.seq + 1;
    count = 0;
  }
  return woken;
}

async function record(
  { deliveries, pace, fannedOut }: FanOutParts,
  covered: Omit<EventRange, 'events'>,
  bySubscription: ReadonlyMap<string, readonly DeliveryRecord[]>,
): Promise<void> {
  const all = [...bySubscription];
  for (let at = 0; at < all.length; at += blocksAtOnce) {
    const some = all.slice(at, at + blocksAtOnce);
    const written = await Promise.all(
      some.map(([subscriptionId, of]) => deliveries.record({ ...covered, subscriptionId, deliveries: of })),
    );
    fannedOut(written.reduce((sum, one) => sum + one, 0));
    const made = some.reduce((sum, [, of]) => sum + of.length, 0);
    await pace.take(some.length * blockCostMs + made * deliveryCostMs);
  }
}

/** Whether an event may have been answered after a subscription. */
function beginningOf(
  { ledgers }: FanOutParts,
  range: EventRange,
): (start: SubscriptionStart, event: LedgerEvent) => boolean | Promise<boolean> {
  const nextCommitDate = nextCommitDates(ledgers, range);
  return (start, event) => {
    if (event.seq <= start.behindSeq || event.createdAt < start.from) return false;
    if (event.createdAt >= start.newestFrom) return true;
    return nextCommitDate(event).then((date) => date === null || date >= start.newestFrom);
  };
}

type Spans = readonly ReadSpan[];

/** The stretches in which an actor could read. Asked once a range for each actor and master. */
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
