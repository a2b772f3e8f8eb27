import type { FindPage, RecordStore, StoredRecord } from '../../store/record-store.ts';
import { type Decoded, findReadable } from '../../store/unreadable-record.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import {
  decodeForm,
  decodeRecord,
  listOf,
  oneOf,
  orNull,
  type RecordForm,
  text,
  textOrNull,
  time,
  webAddress,
} from '../records/record-form.ts';
import type { Walk } from '../walking/walk.ts';
import { walkRecords } from '../walking/walk-records.ts';

/** A webhook subscription as stored. Times are ISO. */
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
  /** The secret, sealed for this record. */
  readonly sealedSecret: string;
  /** null while the subscription is active. */
  readonly endedAt: string | null;
  /** By the owner's DELETE, or by the receiver's answer 410. */
  readonly endedBy: 'owner' | 'receiver' | null;
}

const kind = 'webhook_subscription';

export const subscriptionForm: RecordForm<SubscriptionRecord> = {
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
};

/** One record that counts the changes of all subscriptions. */
const changesKind = 'webhook_changes';
const changesId = 'subscriptions';

/**
 * How long after an end a further call to end the subscription also notes the change, ms: the first call may have
 * failed before it did.
 */
const endNotedAgainMs = 60_000;
/** How long an ended subscription is listed, ms. */
const endedKeptMs = 30 * 24 * 60 * 60_000;

/** The context that a subscription's secret is sealed for. */
export const secretContext = (subscriptionId: string): string => `${kind}/${subscriptionId}/secret`;

export interface Subscriptions {
  /** Returns null if there is none. Throws UnreadableRecord if the record is damaged; lists skip damaged records. */
  get(id: string): Promise<SubscriptionRecord | null>;
  /** Returns the stored record: this one, or the one that an earlier run of the same call created. */
  create(subscription: SubscriptionRecord): Promise<SubscriptionRecord>;
  /**
   * Ends a subscription and notes the change. Returns false if the subscription had ended before, or does not exist.
   * Returns true if it is called again with the same `at` and `by`: so a failed call is finished. After
   * `outcome_unknown` the subscription may have ended without other nodes knowing it.
   */
  end(id: string, at: string, by: 'owner' | 'receiver'): Promise<boolean>;
  ofActor(walk: Walk, actorId: string, page: FindPage): Promise<SubscriptionRecord[]>;
  /** Active subscriptions after `after`, in the order of creation. Fewer than `limit` are the last ones. */
  inForce(limit: number, after: SubscriptionRecord | null): Promise<SubscriptionRecord[]>;
  /** The active subscription with the latest creation time. null if there is none. */
  newestInForce(): Promise<SubscriptionRecord | null>;
  /**
   * A value that changes whenever a subscription is created or ends, before that call is answered. So other nodes
   * notice it.
   */
  changes(): Promise<string>;
  /** Whether the actor has at least `count` active subscriptions. */
  hasInForce(actorId: string, count: number): Promise<boolean>;
}

export function subscriptionsIn(store: RecordStore): Subscriptions {
  const write = (subscription: SubscriptionRecord, replaces: string) => {
    const order = orderOf(subscription);
    const lookups = [{ name: 'actor', value: subscription.actorId, order }];
    if (subscription.endedAt === null) {
      lookups.push({ name: 'in_force', value: 'all', order });
      lookups.push({ name: 'in_force_of', value: subscription.actorId, order });
    }
    const expiresAt = subscription.endedAt === null ? null : Date.parse(subscription.endedAt) + endedKeptMs;
    return store.put({
      kind,
      id: subscription.id,
      replaces,
      value: JSON.stringify(subscription),
      lookups,
      ...(expiresAt === null ? {} : { expiresAt }),
    });
  };
  /**
   * Makes other nodes read the subscriptions again. Two changes by others meanwhile do the same: other nodes may have
   * seen the first before this subscription was written, but not the second.
   */
  const noteChange = async (): Promise<void> => {
    let counted = await store.get(changesKind, changesId);
    for (let tries = 0; tries < 2; tries++) {
      const value = String(Number(counted?.value ?? 0) + 1);
      const replaces = counted?.version ?? 'absent';
      const put = await store.put({ kind: changesKind, id: changesId, replaces, value, lookups: [] });
      if (put.ok) return;
      counted = put.current;
    }
  };
  const find = async (name: string, value: string, page: FindPage): Promise<SubscriptionRecord[]> =>
    (await findReadable(store, kind, { name, value }, page, parse)).map(
      ({ value: subscription }: Decoded<SubscriptionRecord>) => subscription,
    );
  return {
    get: async (id) => {
      const record = await store.get(kind, id);
      return record === null ? null : read(record);
    },
    create: async (subscription) => {
      const put = await write(subscription, 'absent');
      // Also if an earlier run of this call wrote the subscription: it may have stopped before it noted the change.
      await afterPartialWrite(noteChange());
      return put.ok || put.current === null ? subscription : read(put.current);
    },
    end: async (id, at, by) => {
      for (;;) {
        const record = await store.get(kind, id);
        if (record === null) return false;
        const subscription = read(record);
        const { endedAt, endedBy } = subscription;
        if (endedAt === null) {
          const put = await write({ ...subscription, endedAt: at, endedBy: by }, record.version);
          if (!put.ok) continue;
        } else if (endedAt !== at || endedBy !== by) {
          // Another call ended the subscription. Long after the end the change is not noted again: all nodes share that
          // record.
          if (Math.abs(Date.parse(at) - Date.parse(endedAt)) < endNotedAgainMs) await noteChange().catch(() => {});
          return false;
        }
        await afterPartialWrite(noteChange());
        return true;
      }
    },
    changes: async () => (await store.get(changesKind, changesId))?.value ?? '0',
    ofActor: async (walk, actorId, page) => {
      const found: SubscriptionRecord[] = [];
      for await (const one of walkRecords(walk, store, kind, { name: 'actor', value: actorId }, page, parse)) {
        walk.keep(one.record.value.length);
        found.push(one.value);
      }
      return found;
    },
    inForce: (limit, after) =>
      find('in_force', 'all', { limit, ...(after === null ? {} : { after: { order: orderOf(after), id: after.id } }) }),
    newestInForce: async () => (await find('in_force', 'all', { limit: 1, descending: true }))[0] ?? null,
    hasInForce: async (actorId, count) =>
      (await find('in_force_of', actorId, { limit: 1, offset: count - 1 })).length > 0,
  };
}

function orderOf(subscription: SubscriptionRecord): string {
  return `${subscription.createdAt}|${subscription.id}`;
}

function read(record: StoredRecord): SubscriptionRecord {
  return decodeRecord(record, subscriptionForm);
}

/** Throws if the value is no subscription with this id. */
function parse(record: StoredRecord): SubscriptionRecord {
  return decodeForm(record, subscriptionForm);
}
