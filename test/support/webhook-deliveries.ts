import { isoTime } from '../../src/domain/values/time.ts';
import { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { type Deliveries, deliveriesIn } from '../../src/service/webhooks/deliveries.ts';
import { blockKind } from '../../src/service/webhooks/delivery-block.ts';
import { type DeliveryRecord, deliveryIdOf } from '../../src/service/webhooks/delivery-record.ts';
import type { HeldDelivery } from '../../src/service/webhooks/due-deliveries.ts';
import type { Lookup, RecordStore, RecordWrite } from '../../src/store/record-store.ts';
import { ManualClock } from './clock.ts';
import { MemoryRecordStore } from './memory-store/record-store.ts';
import { recordsWith } from './world.ts';

export const minuteMs = 60_000;
export const subscriptionId = '0199aaaa-0000-7000-8000-000000000001';
export const ledgerId = '0199bbbb-0000-7000-8000-00000000000a';
export const startMs = Date.UTC(2026, 10, 21);

type Answer = (pending: HeldDelivery, nowMs: number) => DeliveryRecord;

export const delivered: Answer = ({ delivery }, nowMs) => ({
  ...delivery,
  status: 'DELIVERED',
  attempts: delivery.attempts + 1,
  lastResponseStatus: 200,
  nextAttemptAt: null,
  deliveredAt: isoTime(nowMs),
});

export const retried = ({ delivery }: HeldDelivery, atMs: number): DeliveryRecord => ({
  ...delivery,
  attempts: delivery.attempts + 1,
  lastError: 'No.',
  nextAttemptAt: isoTime(atMs),
});

export interface DeliveryRig {
  readonly clock: ManualClock;
  readonly memory: MemoryRecordStore;
  readonly deliveries: Deliveries;
  /** The look-ups so far. */
  readonly finds: { readonly kind: string; readonly name: string; readonly value: string }[];
  /** Kinds that cannot be written. */
  readonly failing: Set<string>;
  puts(kind: string): readonly RecordWrite[];
  /** Records deliveries of so many events of now, or of a time. Returns their ids. */
  recordNow(count: number): Promise<string[]>;
  recordAt(eventMs: number, count: number): Promise<string[]>;
  /** A delivery that the owner asks for. */
  ask(): Promise<string>;
  pending(): Promise<readonly HeldDelivery[]>;
  sendAll(answer: Answer): Promise<void>;
  /** Calls this once, before the next removal of a record. */
  beforeRemoval(happens: () => Promise<void>): void;
  /** All writes fail after so many. */
  dieAfter(writes: number): void;
  /** Stores all blocks in their format from before there were slots. */
  asBeforeSlots(): Promise<void>;
  /** Another process over the same data. */
  restarted(): DeliveryRig;
}

/** Deliveries of one subscription and ledger over one store, under a clock that the test moves. */
export function deliveriesAt(
  shared: { readonly clock: ManualClock; readonly memory: MemoryRecordStore; readonly ledger: { nextSeq: number } } = {
    clock: new ManualClock(startMs),
    memory: new MemoryRecordStore(),
    ledger: { nextSeq: 0 },
  },
  records: RecordStore = shared.memory,
): DeliveryRig {
  const { clock, memory, ledger } = shared;
  const writes: RecordWrite[] = [];
  const finds: { kind: string; name: string; value: string }[] = [];
  const failing = new Set<string>();
  let happensFirst = async () => {};
  let left = Number.POSITIVE_INFINITY;
  const store = recordsWith(records, {
    find: (kind, lookup, page) => {
      finds.push({ kind, ...lookup });
      return records.find(kind, lookup, page);
    },
    put: async (write) => {
      left -= 1;
      if (left < 0 || failing.has(write.kind)) throw new Error('the store is gone');
      writes.push(write);
      return records.put(write);
    },
    remove: async (kind, id, version) => {
      const first = happensFirst;
      happensFirst = async () => {};
      await first();
      return records.remove(kind, id, version);
    },
  });
  const deliveries = deliveriesIn(store, new MemoryBudget(0), () => clock.now());
  const recordAt = async (eventMs: number, count: number) => {
    const fromSeq = ledger.nextSeq;
    const made = Array.from({ length: count }, (_, at) => newDelivery(fromSeq + at, eventMs, clock.now()));
    await deliveries.record({ subscriptionId, ledgerId, fromSeq, throughSeq: fromSeq + count - 1, deliveries: made });
    ledger.nextSeq += count;
    return made.map(({ id }) => id);
  };
  const pending = async () => (await deliveries.pending(subscriptionId, 1_000, isoTime(clock.now()))).due;
  return {
    clock,
    memory,
    deliveries,
    finds,
    failing,
    puts: (kind) => writes.filter((write) => write.kind === kind),
    recordNow: (count) => recordAt(clock.now(), count),
    recordAt,
    ask: async () => {
      const event = { id: `asked-${clock.now()}`, createdAt: isoTime(clock.now()) };
      const asked = {
        ...newDelivery(0, clock.now(), clock.now()),
        id: deliveryIdOf(subscriptionId, event),
        origin: 'owner',
      };
      await deliveries.create(asked as DeliveryRecord);
      return asked.id;
    },
    pending,
    sendAll: async (answer) => {
      const nowMs = clock.now();
      await Promise.all((await pending()).map((one) => deliveries.replace(one, answer(one, nowMs), nowMs)));
    },
    beforeRemoval: (happens) => {
      happensFirst = happens;
    },
    dieAfter: (count) => {
      left = count;
    },
    asBeforeSlots: async () => {
      const lookup = (write: RecordWrite): Lookup[] =>
        write.lookups.map((one) => (one.name === 'pending' ? { ...one, value: subscriptionId } : one));
      for (const write of writes) {
        const stands = await memory.get(write.kind, write.id);
        if (stands === null) continue;
        if (write.kind !== blockKind) await memory.remove(write.kind, write.id, stands.version);
        else {
          const { inSlot: _, ...value } = JSON.parse(write.value);
          await memory.put({
            ...write,
            replaces: stands.version,
            value: JSON.stringify(value),
            lookups: lookup(write),
          });
        }
      }
    },
    restarted: () => deliveriesAt(shared, records),
  };
}

/** The delivery of the event at `seq`, which was written at `eventMs`; it is recorded at `nowMs`. */
export function newDelivery(seq: number, eventMs: number, nowMs: number, ofLedger = ledgerId): DeliveryRecord {
  const event = { id: `${ofLedger}-${seq}`, createdAt: isoTime(eventMs) };
  return {
    id: deliveryIdOf(subscriptionId, event),
    subscriptionId,
    eventId: event.id,
    eventType: 'STEP',
    place: { ledgerId: ofLedger, seq },
    eventCreatedAt: event.createdAt,
    origin: 'log',
    status: 'PENDING',
    attempts: 0,
    lastError: null,
    lastResponseStatus: null,
    createdAt: isoTime(nowMs),
    nextAttemptAt: isoTime(nowMs),
    deliveredAt: null,
  };
}
