import { expect, test } from 'vitest';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { entriesWithin } from '../../../../src/service/reading/event-chunk.ts';
import { boundedLedgers } from '../../../../src/service/walking/bounded-stores.ts';
import { Walk } from '../../../../src/service/walking/walk.ts';
import { pageCharsMax } from '../../../../src/store/pages.ts';
import { MemoryLedgerStore } from '../../../support/memory-store/ledger-store.ts';
import { entriesFor } from '../../../support/store-entries.ts';
import { storeWith } from '../../../support/world.ts';

const mib = 1024 * 1024;
const largeChars = 513 * 1024;
const scopes = Array.from({ length: 8 }, (_, n) => `scope ${n}`);
const events = 160;
const ledgerId = 'the-ledger';

/** A ledger whose events are in eight scopes in turn, and become large in the middle. */
async function ledgerInScopes() {
  const store = new MemoryLedgerStore(() => 0);
  const claim = await store.claim(ledgerId);
  const row = (seq: number) => (seq < 80 ? `${seq}` : `${seq}`.padEnd(largeChars, 'x'));
  const projections = (seq: number) => [{ kind: 'scope', scope: scopes[seq % 8] ?? '' } as const];
  await store.append(claim, entriesFor(claim, events, { row, projections }));
  const running = { now: 0, most: 0 };
  const counted = storeWith(store, {
    readScope: async (...given) => {
      running.now += 1;
      running.most = Math.max(running.most, running.now);
      const page = await store.readScope(...given);
      running.now -= 1;
      return page;
    },
  });
  return { store: counted, running };
}

test.each([
  { budgetMib: 64, descending: false, atOnce: 8 },
  { budgetMib: 64, descending: true, atOnce: 8 },
  { budgetMib: 5, descending: false, atOnce: 1 },
  { budgetMib: 5, descending: true, atOnce: 1 },
])(
  'a chunk of several scopes is a page and a row; $atOnce are read at once with $budgetMib MiB ($descending)',
  async ({ budgetMib, descending, atOnce }) => {
    const { store, running } = await ledgerInScopes();
    const memory = new MemoryBudget(budgetMib * mib);
    const places = { take: () => null, leave: () => {} };
    const walk = new Walk({ places, memory }, 'a caller', new AbortController().signal);
    const bounds = { low: 0, high: events - 1 };
    const seqs: number[] = [];
    const chunks = entriesWithin(boundedLedgers(walk, store), { ledgerId, scopes }, bounds, descending, events);
    for await (const { entries, missing } of chunks) {
      expect(missing).toEqual([]);
      expect(entries.reduce((sum, { row }) => sum + row.length, 0)).toBeLessThan(pageCharsMax + largeChars);
      expect(memory.heldBytes()).toBe(4 * mib);
      seqs.push(...entries.map(({ seq }) => seq));
    }
    const all = Array.from({ length: events }, (_, seq) => seq);
    expect(seqs).toEqual(descending ? all.toReversed() : all);
    expect(running.most).toBe(atOnce);
    walk.end();
    expect(memory.heldBytes()).toBe(0);
  },
);
