import type { FindPage, RecordStore } from '../../store/record-store.ts';
import { decodeOrPassOver } from '../../store/unreadable-record.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import { type CollectionRules, collection } from '../records/collection.ts';
import { count as isCount, listOf, oneOf, orNull, text, textOrNull, time, webAddress } from '../records/record-form.ts';
import { unboundedWalk, type Walk } from '../walking/walk.ts';

export interface SubscriptionRecord {
  readonly id: string;
  /** The owner, whose access is checked at each delivery. */
  readonly actorId: string;
  readonly url: string;
  /** Empty: all types. */
  readonly eventTypes: readonly string[];
  /** null: all ledgers that the owner may read. */
  readonly ledgerId: string | null;
  readonly createdAt: string;
  readonly sealedSecret: string;
  /** null while the subscription is active. */
  readonly endedAt: string | null;
  /** By the owner's DELETE, or by the receiver's answer 410. */
  readonly endedBy: 'owner' | 'receiver' | null;
}

const kind = 'webhook_subscription';

const endedKeptMs = 30 * 24 * 60 * 60_000;

export const subscriptionRules: CollectionRules<SubscriptionRecord> = {
  kind,
  form: {
    id: text,
    actorId: text,
    url: webAddress,
    eventTypes: listOf(text),
    ledgerId: textOrNull,
    createdAt: time,
    sealedSecret: text,
    endedAt: orNull(time),
    endedBy: orNull(oneOf('owner', 'receiver')),
  },
  id: (subscription) => subscription.id,
  lookups: (subscription) => {
    const { actorId, endedAt } = subscription;
    const order = orderOf(subscription);
    const ofActor = { name: 'actor', value: actorId, order };
    if (endedAt !== null) return [ofActor];
    return [ofActor, { name: 'in_force', value: 'all', order }, { name: 'in_force_of', value: actorId, order }];
  },
  expiresAt: ({ endedAt }) => (endedAt === null ? undefined : Date.parse(endedAt) + endedKeptMs),
};

/** One record that counts the changes of all subscriptions. */
const changesKind = 'webhook_changes';
const changesId = 'subscriptions';

/** How long after an end another end also notes the change, ms: the first may have failed before it did. */
const endNotedAgainMs = 60_000;

function parseCount(json: string): number {
  const value: unknown = JSON.parse(json);
  if (!isCount(value)) throw new TypeError('it is no count');
  return value as number;
}

export const secretContext = (subscriptionId: string): string => `${kind}/${subscriptionId}/secret`;

export type Subscriptions = ReturnType<typeof subscriptionsIn>;

export function subscriptionsIn(store: RecordStore) {
  const subscriptions = collection(store, subscriptionRules);
  /**
   * Makes other nodes read the subscriptions again. Two changes by others meanwhile do the same: other nodes may have
   * seen the first before this subscription was written, but not the second.
   */
  const noteChange = async (): Promise<void> => {
    let counted = await store.get(changesKind, changesId);
    for (let tries = 0; tries < 2; tries++) {
      const before = counted === null ? 0 : (decodeOrPassOver(counted, parseCount) ?? 0);
      const value = String(before + 1);
      const replaces = counted?.version ?? 'absent';
      const put = await store.put({ kind: changesKind, id: changesId, replaces, value, lookups: [] });
      if (put.ok) return;
      counted = put.current;
    }
  };
  const find = (name: string, value: string, page: FindPage): Promise<SubscriptionRecord[]> =>
    // They are few and small, and a node that takes over shards waits for them.
    subscriptions.find(unboundedWalk(), name, value, page, page.limit);
  /** Returns null if there is none. Throws UnreadableRecord if the record is damaged; lists skip damaged records. */
  const get = async (id: string): Promise<SubscriptionRecord | null> => (await subscriptions.get(id))?.value ?? null;
  return {
    get,
    /** Returns the stored record: this one, or the one that an earlier run of the same call created. */
    create: async (subscription: SubscriptionRecord): Promise<SubscriptionRecord> => {
      const isNew = await subscriptions.create(subscription);
      // Also if an earlier run of this call wrote the subscription: it may have stopped before it noted the change.
      await afterPartialWrite(noteChange());
      return isNew ? subscription : ((await afterPartialWrite(get(subscription.id))) ?? subscription);
    },
    /**
     * Ends a subscription and notes the change. Returns false if the subscription had ended before, or does not exist.
     * Returns true if it is called again with the same `at` and `by`: so a failed call is finished. After
     * `outcome_unknown` the subscription may have ended without other nodes knowing it.
     */
    end: async (id: string, at: string, by: 'owner' | 'receiver'): Promise<boolean> => {
      for (;;) {
        const held = await subscriptions.get(id);
        if (held === null) return false;
        const { endedAt, endedBy } = held.value;
        if (endedAt === null) {
          if (!(await subscriptions.replace(held, { ...held.value, endedAt: at, endedBy: by }))) continue;
        } else if (endedAt !== at || endedBy !== by) {
          // Long after the end the change is not noted again: all nodes share that record.
          if (Math.abs(Date.parse(at) - Date.parse(endedAt)) < endNotedAgainMs) await noteChange().catch(() => {});
          return false;
        }
        await afterPartialWrite(noteChange());
        return true;
      }
    },
    /**
     * A value that changes whenever a subscription is created or ends, before that call is answered. Another change of
     * a record need not be noted: a node keeps each record as it first read it. It is the version, which never comes
     * again, and not the count, which begins anew where it was damaged.
     */
    changes: async () => (await store.get(changesKind, changesId))?.version ?? 'absent',
    ofActor: (walk: Walk, actorId: string, page: FindPage) => subscriptions.find(walk, 'actor', actorId, page),
    /** Active subscriptions in the order of creation. Fewer than the page's limit are its last ones. */
    inForce: (page: FindPage) => find('in_force', 'all', page),
    /** The active subscription with the latest creation time. null if there is none. */
    newestInForce: async () => (await find('in_force', 'all', { limit: 1, descending: true }))[0] ?? null,
    /** Whether the actor has at least `count` active subscriptions. */
    hasInForce: async (actorId: string, count: number) =>
      (await find('in_force_of', actorId, { limit: 1, offset: count - 1 })).length > 0,
  };
}

/** The place of an active subscription among all of them. */
export function placeOf(subscription: SubscriptionRecord): { readonly order: string; readonly id: string } {
  return { order: orderOf(subscription), id: subscription.id };
}

/** The time of creation in the order of a place, ms since 1970. A time alone (ISO) may stand for it. */
export function timeOfPlace(order: string): number {
  return Date.parse(order.split('|', 1)[0] ?? '');
}

function orderOf(subscription: SubscriptionRecord): string {
  return `${subscription.createdAt}|${subscription.id}`;
}
