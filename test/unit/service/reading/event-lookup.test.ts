import { expect, test } from 'vitest';
import { eventAt, eventWithId } from '../../../../src/service/reading/event-lookup.ts';
import { boundedLedgers } from '../../../../src/service/walking/bounded-stores.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import { append, createMaster, ledgerId, openLedger, stranger } from '../../../support/commands.ts';
import { storeOf } from '../../../support/event-lists.ts';
import { beforeCalls, chainOf, storeWith } from '../../../support/world.ts';

/** More events of one millisecond than one walk through a filtered list examines. */
const chain = chainOf(openLedger(), createMaster(), ...Array.from({ length: 10_100 }, () => append()));
const { events } = chain;
const store = await storeOf(chain);
const bounded = (of = store) => boundedLedgers(unboundedWalk(), of);
const seqs = [0, 1, 2, 9_999, 10_000, 10_050, events.length - 1];

test('an event is found by its seq and by its id', async () => {
  for (const seq of seqs) {
    expect(await eventAt(bounded(), ledgerId, seq)).toEqual(events[seq]);
    expect(await eventWithId(bounded(), ledgerId, events[seq]?.id ?? '')).toEqual(events[seq]);
  }
});

test('no event is found beyond the head, by an unknown id or in an unknown ledger', async () => {
  const unknown = `${events[5]?.id.slice(0, -8)}ffffffff`;
  expect(await eventWithId(bounded(), ledgerId, unknown)).toBeNull();
  expect(await eventWithId(bounded(), ledgerId, stranger)).toBeNull();
  expect(await eventAt(bounded(), stranger, 0)).toBeNull();
  expect(await eventWithId(bounded(), stranger, events[0]?.id ?? '')).toBeNull();
});

test('a store is not asked for seqs beyond the head, which may be larger than it can take', async () => {
  const asked: number[] = [];
  const watched = beforeCalls(store, { read: (_, from) => void asked.push(from) });
  for (const seq of [events.length, events.length + 1, 2 ** 53 - 1])
    expect(await eventAt(bounded(watched), ledgerId, seq)).toBeNull();
  expect(asked).toEqual([]);
});

test('a row that is missing, holds no event, or holds that of another seq is not found', async () => {
  const damaged = storeWith(store, {
    read: async (...page) =>
      (await store.read(...page)).flatMap((entry) => {
        if (entry.seq === 3) return [];
        return [{ ...entry, row: entry.seq === 4 ? 'no event' : entry.row, seq: entry.seq === 5 ? 6 : entry.seq }];
      }),
  });
  for (const seq of [3, 4, 5]) expect([seq, await eventAt(bounded(damaged), ledgerId, seq)]).toEqual([seq, null]);
});
