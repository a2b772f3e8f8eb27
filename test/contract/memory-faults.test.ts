import { describe, expect, test } from 'vitest';
import { OutcomeUnknown } from '../../src/store/ledger-store.ts';
import { MemoryLedgerStore } from '../support/memory-store/ledger-store.ts';
import { MemoryRecordStore } from '../support/memory-store/record-store.ts';
import { entriesAfter, entriesFor, headOf } from '../support/store-entries.ts';
import { faultyLedgerStore, faultyRecordStore, type StoreFault, scriptedFaults } from '../support/store-faults.ts';

function newStore() {
  const faults = scriptedFaults();
  return { faults, store: faultyLedgerStore(new MemoryLedgerStore(() => 0), faults.choose) };
}

const unavailable = { code: 'unavailable' };

describe('the faulty store', () => {
  test.each<[StoreFault, boolean]>([
    ['lost', false],
    ['applied', true],
    ['late', false],
    ['late-before-claim', true],
  ])('makes an append %s with OutcomeUnknown, and a claim settles it', async (fault, lands) => {
    const { faults, store } = newStore();
    const claim = await store.claim('ledger');
    const entries = entriesFor(claim, 2);
    faults.fail('append', fault);
    await expect(store.append(claim, entries)).rejects.toBeInstanceOf(OutcomeUnknown);
    const next = await store.claim('ledger');
    expect(next.head).toEqual(lands ? headOf(entries) : null);
    expect((await store.read('ledger', 0, 9)).length).toBe(lands ? 2 : 0);
    await store.append(next, entriesAfter(next.head, 1));
    expect(store.lateOutcomes).toEqual(fault === 'late' ? ['fenced'] : fault === 'late-before-claim' ? ['landed'] : []);
  });

  test('makes a claim without an answer, which has fenced the one before', async () => {
    const { faults, store } = newStore();
    const claim = await store.claim('ledger');
    faults.fail('claim', 'unavailable', 'applied');
    await expect(store.claim('ledger')).rejects.toMatchObject(unavailable);
    expect(await store.stands(claim, null)).toBe(true);
    await expect(store.claim('ledger')).rejects.toMatchObject(unavailable);
    expect(await store.stands(claim, null)).toBe(false);
  });

  test('makes unavailable appends and reads that do nothing', async () => {
    const { faults, store } = newStore();
    const claim = await store.claim('ledger');
    faults.fail('append', 'unavailable');
    await expect(store.append(claim, entriesFor(claim, 1))).rejects.toMatchObject(unavailable);
    faults.fail('read', 'unavailable', 'unavailable');
    await expect(store.head('ledger')).rejects.toMatchObject(unavailable);
    await expect(store.stands(claim, null)).rejects.toMatchObject(unavailable);
    expect(await store.head('ledger')).toBeNull();
  });

  test('makes an applied put outcome_unknown, which the next put finds', async () => {
    const faults = scriptedFaults();
    const store = faultyRecordStore(new MemoryRecordStore(), faults.choose);
    const write = { kind: 'k', id: 'i', replaces: 'absent', value: '1', lookups: [] };
    faults.fail('record-write', 'lost', 'applied');
    await expect(store.put(write)).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(await store.get('k', 'i')).toBeNull();
    await expect(store.put(write)).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(await store.put(write)).toMatchObject({ ok: false, current: { value: '1' } });
  });
});

describe('the memory store', () => {
  test('refuses two concurrent appends of a claim', async () => {
    const store = new MemoryLedgerStore(() => 0);
    const claim = await store.claim('ledger');
    const first = entriesFor(claim, 1);
    const both = await Promise.allSettled([
      store.append(claim, first),
      store.append(claim, entriesAfter(headOf(first), 1)),
    ]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(both[1]).toMatchObject({ reason: expect.any(TypeError) });
  });

  test('refuses two lines at one order of a list', async () => {
    const store = new MemoryLedgerStore(() => 0);
    const claim = await store.claim('ledger');
    const line = (value: string) => ({ kind: 'line', list: 'l', order: 'o', value }) as const;
    const twice = entriesFor(claim, 2, { projections: (seq) => [line(`v${seq}`)] });
    await expect(store.append(claim, twice)).rejects.toBeInstanceOf(TypeError);
    const first = entriesFor(claim, 1, { projections: () => [line('a')] });
    await store.append(claim, first);
    const again = entriesAfter(headOf(first), 1, { projections: () => [line('b')] });
    await expect(store.append(claim, again)).rejects.toBeInstanceOf(TypeError);
    expect(await store.head('ledger')).toEqual(headOf(first));
  });

  test('returns nothing that callers can change', async () => {
    const store = new MemoryLedgerStore(() => 0);
    const claim = await store.claim('ledger');
    await store.append(claim, entriesFor(claim, 1));
    const [entry] = await store.read('ledger', 0, 1);
    expect(Object.isFrozen(entry)).toBe(true);
    expect(Object.isFrozen(await store.head('ledger'))).toBe(true);
    expect(Object.isFrozen(claim)).toBe(true);
  });

  test('forgets a command at the millisecond of its end', async () => {
    let nowMs = 1000;
    const store = new MemoryLedgerStore(() => nowMs);
    const claim = await store.claim('ledger');
    const command = { id: 'c', fingerprint: 'f', permanent: false };
    await store.append(claim, entriesFor(claim, 1, { projections: () => [{ kind: 'command', command }] }));
    nowMs += 24 * 60 * 60 * 1000;
    expect((await store.findCommands('ledger', [command])).size).toBe(1);
    nowMs += 1;
    expect((await store.findCommands('ledger', [command])).size).toBe(0);
  });
});
