import type { LedgerEvent } from '../domain/event.ts';
import { isoTime } from '../domain/time.ts';
import type { Deliveries } from '../service/deliveries.ts';
import type { DeliveryRecord } from '../service/delivery-record.ts';
import type { SubscriptionRecord } from '../service/subscription-record.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import { asksFor, newDelivery } from './event-delivery.ts';
import { type EventRange, nextCommitDates } from './event-range.ts';
import type { Pace } from './pace.ts';
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
  mayRead(actorId: string, ledgerId: string, masterId: string | null): Promise<boolean>;
  /** New deliveries were recorded. */
  fannedOut(deliveries: number): void;
}

/** Records the deliveries of a range to those of the subscriptions whose owners may read it; answers the subscriptions that have some. */
export async function fanOut(
  parts: FanOutParts,
  range: EventRange,
  subscriptions: readonly SubscriptionRecord[],
): Promise<ReadonlySet<string>> {
  const { ledgerId, throughSeq } = range;
  const createdAt = isoTime(parts.now());
  const mayRead = accessOf(parts, ledgerId);
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
      const allowed = mayRead(subscription.actorId, event.master?.id ?? null);
      if (!(typeof allowed === 'boolean' ? allowed : await allowed)) continue;
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

/** Who may read, asked once a range for each actor and master. */
function accessOf(
  { mayRead }: FanOutParts,
  ledgerId: string,
): (actorId: string, masterId: string | null) => boolean | Promise<boolean> {
  const known = new Map<string, boolean>();
  return (actorId, masterId) => {
    const key = `${actorId}|${masterId ?? ''}`;
    const answer = known.get(key);
    if (answer !== undefined) return answer;
    return mayRead(actorId, ledgerId, masterId).then((allowed) => {
      known.set(key, allowed);
      return allowed;
    });
  };
}
