import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { actorService } from '../../../../src/service/actors/actors.ts';
import { Identities } from '../../../../src/service/actors/identities.ts';
import { enrolKey } from '../../../../src/service/actors/signing-keys.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { changeMutex, changesWaitingByDefault } from '../../../../src/service/records/change-mutex.ts';
import { type ChangeOrder, changingCollection } from '../../../../src/service/records/collection.ts';
import { count, text } from '../../../../src/service/records/record-form.ts';
import { bareActor } from '../../../support/actor-record.ts';
import { settled } from '../../../support/clock.ts';
import { supplier, uuid } from '../../../support/commands.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { newKeyPair } from '../../../support/parties.ts';
import { slowRecords } from '../../../support/slow-records.ts';
import { codeOf, recordsWith, startMs } from '../../../support/world.ts';

interface Counter {
  readonly id: string;
  readonly value: number;
}

const rules = {
  kind: 'counter',
  form: { id: text, value: count },
  id: ({ id }: Counter) => id,
  lookups: () => [],
};

const increment = (held: Counter): Counter => ({ ...held, value: held.value + 1 });

/** A counter `a` in a store whose puts may hang. `waiting`: how many changes of it may wait. */
async function counterRig(waiting?: number) {
  const store = new MemoryRecordStore();
  const slow = slowRecords(store);
  let reads = 0;
  const records = recordsWith(slow.records, {
    get: (kind, id) => {
      reads += 1;
      return slow.records.get(kind, id);
    },
  });
  const counters = changingCollection(records, rules, changeMutex(waiting));
  await counters.create({ id: 'a', value: 0 });
  return {
    slow,
    counters,
    increment: (signal: AbortSignal | null = new AbortController().signal, order?: ChangeOrder) =>
      codeOf(counters.update('a', increment, signal, order)),
    /** The same counter, which another node changes. */
    elsewhere: changingCollection(store, rules, changeMutex()),
    value: async () => (await counters.get('a'))?.value.value,
    reads: () => reads,
  };
}

test('500 prefers of a key that come at once read its actor once each, though puts of old versions are refused', async () => {
  const store = new MemoryRecordStore();
  let reads = 0;
  const records = recordsWith(store, {
    get: (kind, id) => {
      reads += 1;
      return store.get(kind, id);
    },
    // As in LMDB, those that are written at once are one commit.
    put: async (write) => {
      await nextTurn();
      return store.put(write);
    },
  });
  const identities = new Identities(
    records,
    () => startMs,
    async () => true,
    changeMutex(500),
  );
  await identities.create(enrolKey(bareActor(supplier), newKeyPair().publicKey, startMs));
  const { preferActorKey } = actorService(identities, async () => {});
  const { signal } = new AbortController();
  const prefer = (_: unknown, at: number) => {
    const call = { now: startMs, caller: { actorId: supplier }, newId: () => uuid(at), signal } as unknown as Call;
    return codeOf(preferActorKey({ actorId: supplier, kid: 'key-1' } as never, call));
  };
  const outcomes = await Promise.all(Array.from({ length: 500 }, prefer));
  expect(new Set(outcomes)).toEqual(new Set(['carried out']));
  // Each call also reads the actor to see whether its caller may change it.
  expect(reads).toBe(2 * 500);
});

describe('changes of a record', () => {
  test('wait for each other up to CHANGES_WAITING, and those of another record do not wait', async () => {
    const { slow, counters, increment: incrementA, value } = await counterRig();
    await counters.create({ id: 'b', value: 0 });
    slow.next('hangs');
    const first = incrementA();
    const waiting = Array.from({ length: changesWaitingByDefault }, () => incrementA());
    const { signal } = new AbortController();
    const oneMore = counters.update('a', increment, signal);
    await expect(oneMore).rejects.toMatchObject({ code: 'overloaded', details: { bound: 'CHANGES_WAITING' } });
    expect(await counters.update('b', increment, signal)).toMatchObject({ value: 1 });
    await settled();
    await slow.land();
    expect(new Set(await Promise.all([first, ...waiting]))).toEqual(new Set(['carried out']));
    expect(await value()).toBe(1 + changesWaitingByDefault);
    expect(await incrementA()).toBe('carried out');
  });

  test('whose call ends while they wait are given up at once, unread, and others get their places', async () => {
    const { slow, increment, value, reads } = await counterRig(1);
    slow.next('hangs');
    const first = increment();
    const ending = new AbortController();
    const ended = increment(ending.signal);
    expect(await increment()).toBe('overloaded');
    ending.abort();
    expect(await ended).toBe('unavailable');
    const next = increment();
    await settled();
    expect(reads()).toBe(1);
    await slow.land();
    expect(await Promise.all([first, next])).toEqual(['carried out', 'carried out']);
    expect(await value()).toBe(2);
  });

  test('whose call has ended before they come are not begun', async () => {
    const { increment, reads } = await counterRig();
    expect(await increment(AbortSignal.abort())).toBe('unavailable');
    expect(reads()).toBe(0);
  });

  test('that another node came before are not tried again once their call has ended', async () => {
    const { slow, increment, elsewhere, value } = await counterRig();
    slow.next('hangs');
    const ending = new AbortController();
    const ended = increment(ending.signal);
    await settled();
    await elsewhere.update('a', (held) => ({ ...held, value: 10 }), null);
    ending.abort();
    await slow.land();
    expect(await ended).toBe('unavailable');
    expect(await value()).toBe(10);
    expect(await increment()).toBe('carried out');
  });

  test('whose outcome is unknown are answered so, and the next one begins', async () => {
    const { slow, increment, value } = await counterRig();
    slow.next('untold');
    const [first, second] = [increment(), increment()];
    expect(await Promise.all([first, second])).toEqual(['outcome_unknown', 'carried out']);
    await slow.land();
    expect(await value()).toBe(1);
  });

  test('that come first wait for one of those in turn at most, and are not refused', async () => {
    const { slow, increment, value } = await counterRig(3);
    const done: string[] = [];
    const named = async (name: string, outcome: Promise<string>) => {
      await outcome;
      done.push(name);
    };
    slow.next('hangs');
    const waiting = ['a', 'b', 'c', 'd'].map((name) => named(name, increment()));
    expect(await increment()).toBe('overloaded');
    waiting.push(named('first', increment(null, 'first')), named('next first', increment(null, 'first')));
    await settled();
    await slow.land();
    await Promise.all(waiting);
    expect(done).toEqual(['a', 'first', 'b', 'next first', 'c', 'd']);
    expect(await value()).toBe(6);
  });
});
