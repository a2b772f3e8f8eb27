import type { FindPage, RecordStore, StoredRecord } from '../../store/record-store.ts';
import { type Decoded, findReadable } from '../../store/unreadable-record.ts';
import { afterPartialWrite } from '../partial-failure.ts';
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
} from '../record-form.ts';
import type { Walk } from '../walk.ts';
import { walkRecords } from '../walk-records.ts';

/** A webhook subscription as it is kept. Times are ISO. */
export interface SubscriptionRecord {
  readonly id: string;
  /** Its owner, whose access counts at each delivery. */
  readonly actorId: string;
  readonly url: string;
  /** Empty: all types. */
  readonly eventTypes: readonly string[];
  /** null: all ledgers that the owner may read. */
  readonly ledgerId: string | null;
  readonly createdAt: string;
  /** The secret, sealed for this record. */
  readonly sealedSecret: string;
  /** null while it is in force. */
  readonly endedAt: string | null;
  /** By a DELETE of the owner's, or a 410 of the receiver's. */
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

/** How long after an end whoever finds it ended has the change noted too: who ended it may have failed before that. */
const endNotedAgainMs = 60_000;
/** How long a subscription that has ended is still listed. */
const endedKeptMs = 30 * 24 * 60 * 60_000;

/** What a subscription's secret is sealed for. */
export const secretContext = (subscriptionId: string): string => `${kind}/${subscriptionId}/secret`;

export interface Subscriptions {
  /** Throws UnreadableRecord for one that is damaged. Lists pass such a one over. */
  get(id: string): Promise<SubscriptionRecord | null>;
  /** The record that stands under the id now: this one, or what an earlier run of the same call has made. */
  create(subscription: SubscriptionRecord): Promise<SubscriptionRecord>;
  /**
   * Ends a subscription and notes the change. False if it had ended before, or there is none. True when said again with the same `at` and
   * `by`, which is how a call that failed is finished: thrown as `outcome_unknown` it may have ended, and other nodes may not know of it.
   */
  end(id: string, at: string, by: 'owner' | 'receiver'): Promise<boolean>;
  ofActor(walk: Walk, actorId: string, page: FindPage): Promise<SubscriptionRecord[]>;
  /** Subscriptions in force, in the order of their making, behind `after`. Less than `limit` are the last ones. */
  inForce(limit: number, after: SubscriptionRecord | null): Promise<SubscriptionRecord[]>;
  /** The one in force that was made last, by its date; null: there is none. */
  newestInForce(): Promise<SubscriptionRecord | null>;
  /** Changes with every subscription that is made or ends, before its call is answered: so one node learns what another has done. */
  changes(): Promise<string>;
  /** Whether the actor has at least so many in force. */
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
   * Has other nodes read the subscriptions again. Two counts of others in between do that too: the first may have been seen before what is
   * noted here was written, the second cannot have been.
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
      // Also where an earlier run of this call has written it: that may have died before it noted the change.
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
          // It is not this call's to finish. Long after the end nothing is written: all nodes share that record.
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

/** Throws for a value that is no subscription of this id. */
function parse(record: StoredRecord): SubscriptionRecord {
  return decodeForm(record, subscriptionForm);
}
