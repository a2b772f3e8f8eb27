import { expect, test } from 'vitest';
import { entriesWithin } from '../../../../src/service/reading/event-chunk.ts';
import { boundedLedgers } from '../../../../src/service/walking/bounded-stores.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import { MemoryLedgerStore } from '../../../support/memory-store/ledger-store.ts';
import { entriesFor } from '../../../support/store-entries.ts';
import { beforeCalls } from '../../../support/world.ts';

test('events before two large ones are not read again for each event of the chunk', async () => {
  const ledgerId = 'the-ledger';
  const events = 300;
  const store = new MemoryLedgerStore(() => 0);
  const claim = await store.claim(ledgerId);
  // The second large one fills a page, and one small event stands behind it.
  const row = (seq: number) => (seq === 297 || seq === 298 ? `${seq}`.padEnd(560 * 1024, 'x') : `${seq}`);
  await store.append(claim, entriesFor(claim, events, { row }));
  let reads = 0;
  const counted = beforeCalls(store, {
    read: () => {
      reads += 1;
    },
  });
  const seqs: number[] = [];
  const bounds = { low: 0, high: events - 1 };
  const place = { ledgerId, scopes: null };
  for await (const { entries } of entriesWithin(boundedLedgers(unboundedWalk(), counted), place, bounds, true, 1_000))
    seqs.push(...entries.map(({ seq }) => seq));
  expect(seqs).toEqual(Array.from({ length: events }, (_, index) => events - 1 - index));
  expect(reads).toBeLessThan(10);
});
