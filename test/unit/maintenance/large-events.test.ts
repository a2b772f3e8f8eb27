import { expect, test } from 'vitest';
import { copyLedger } from '../../../src/maintenance/copy/copy-ledger.ts';
import { eventsUpTo } from '../../../src/maintenance/scrub/events-up-to.ts';
import type { Finding } from '../../../src/maintenance/scrub/finding.ts';
import { wrongPending } from '../../../src/maintenance/scrub/pending-scrub.ts';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import { charsOf } from '../../../src/store/pages.ts';
import { append, createMaster, ledgerId, openLedger } from '../../support/commands.ts';
import { storeOf } from '../../support/event-lists.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';
import { chainOf, startMs, storeWith } from '../../support/world.ts';

const mib = 1024 * 1024;
const rowCharsMax = 576 * 1024;
const chain = chainOf(
  openLedger(),
  createMaster(),
  ...Array.from({ length: 56 }, (_, n) => append({ payload: `{"n":${n}}` })),
  ...Array.from({ length: 80 }, () => append({ payload: `{"text":"${'x'.repeat(260_000)}"}` })),
);
const { events } = chain;
const newest = events.at(-1);
const head = { seq: newest?.seq ?? 0, hash: newest?.hash ?? '' };

/** The chain in a store, and the characters of the largest answer to a read. */
async function measured(): Promise<{ readonly store: LedgerStore; readonly largest: () => number }> {
  const inner = await storeOf(chain);
  let largest = 0;
  const store = storeWith(inner, {
    read: async (...given) => {
      const entries = await inner.read(...given);
      largest = Math.max(largest, charsOf(entries));
      return entries;
    },
  });
  return { store, largest: () => largest };
}

test('a copy reads as much of large events as it writes in one batch', async () => {
  const { store, largest } = await measured();
  const target = new MemoryLedgerStore(() => startMs);
  await copyLedger({ source: store, target, now: () => startMs, copied: () => {} }, ledgerId, head);
  expect(await target.head(ledgerId)).toEqual(head);
  expect(largest()).toBeLessThan(256 * 1024 + rowCharsMax);
});

test('the scrub takes a ledger of large events in windows of 16 MiB', async () => {
  const { store, largest } = await measured();
  const findings: Finding[] = [];
  const windows: (readonly [from: number, to: number])[] = [];
  const seqs: number[] = [];
  const walk = eventsUpTo({
    ledgers: store,
    inspection: { fullBuckets: async function* () {} },
    ledgerId,
    head,
    projections: { take: async (_events, _facts, from, to) => void windows.push([from, to]) },
    found: (finding) => void findings.push(finding),
  });
  for await (const event of walk) seqs.push(event.seq);
  expect(findings).toEqual([]);
  expect(seqs).toEqual(events.map(({ seq }) => seq));
  expect(largest()).toBeLessThan(16 * mib + rowCharsMax);
  expect(windows).toHaveLength(2);
  expect(windows[0]?.[1]).toBe(windows[1]?.[0]);
  expect(windows.at(-1)?.[1]).toBe(events.length);
});

test('the scrub of what a newest batch keeps reads large events in pages', async () => {
  const { store, largest } = await measured();
  const stray = { kind: 'scope', scope: 'of nobody' } as const;
  const findings = await wrongPending(store, ledgerId, head, { projectedSeq: 1, pending: [stray] });
  expect(findings).toHaveLength(1);
  expect(largest()).toBeLessThan(mib + rowCharsMax);
});
