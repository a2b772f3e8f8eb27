import { expect, test } from 'vitest';
import { names } from '../../../../src/domain/event/projection.ts';
import { LedgerReading } from '../../../../src/service/reading/ledger-reading.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import { MemoryLedgerStore } from '../../../support/memory-store/ledger-store.ts';
import { storeWith } from '../../../support/world.ts';

const ledgerId = '0199dddd-0000-7000-8000-000000000001';
const delegateId = '0199aaaa-0000-7000-8000-000000000001';
const masterIds = Array.from({ length: 10_000 }, (_, n) => `0199cccc-0000-7000-8000-${String(n).padStart(12, '0')}`);

const ended = { grant: null, linkId: 'l', revokedAt: '2026-11-21T02:06:39.100Z' };

/** A delegate of so many masters, of 10,000 if nothing is said, that has lost all but one, or all. */
function delegateOf(held: string | null, masters: readonly string[] = masterIds, more = {}) {
  const grant = { role: 'AUDITOR', access: 'read', expiresAt: null, ...more };
  const clock = { ms: 0 };
  /** `projectedBefore` null: the changes by all events can be read. */
  const log = { seq: 0, masters, projectedBefore: null as number | null };
  const cells = new Map<string, unknown>([
    [
      names.ledger(ledgerId),
      { ledgerId, type: 'ORDER', buyerActorId: 'b', supplierActorId: 's', organizationId: null },
    ],
    ...masters.map((id) => [names.grant('master', id, delegateId), id === held ? { grant } : ended] as const),
  ]);
  let checks = 0;
  /** How long each page of masters takes, ms. */
  const pace = { pageMs: 0 };
  const store = storeWith(new MemoryLedgerStore(() => 0), {
    head: async () => ({ seq: log.seq, hash: '' }),
    cell: async (key) => {
      if (key.startsWith(names.grant('master', '', '').slice(0, -1))) checks += 1;
      const value = cells.get(key);
      return value === undefined ? null : { version: 1, value: JSON.stringify(value) };
    },
    lines: async (list, { from, offset = 0, limit, descending = false }) => {
      expect(list).toBe(names.masterLinksOf(ledgerId, delegateId));
      clock.ms += pace.pageMs;
      const listed = descending ? log.masters.toReversed() : log.masters;
      const first = (from === undefined ? 0 : listed.indexOf(from)) + offset;
      const found = listed.slice(first, first + limit);
      return found.map((masterId) => ({ order: masterId, value: JSON.stringify({ masterId }) }));
    },
  });
  const reading = new LedgerReading(store, () => clock.ms);
  const masterStore = {
    cell: (key: string) => store.cell(key),
    lines: store.lines.bind(store),
    projectedBefore: async () => log.projectedBefore ?? log.seq + 1,
  };
  return {
    reading,
    store,
    clock,
    log,
    pace,
    checks: () => checks,
    mayRead: () => reading.mayReadEvent(delegateId, ledgerId, null, masterStore),
    /** The next event of the ledger grants a master, or ends its grant. */
    change: (masterId: string, value: unknown) => {
      cells.set(names.grant('master', masterId, delegateId), value);
      if (!log.masters.includes(masterId)) log.masters = [...log.masters, masterId];
      log.seq += 1;
    },
    granted: { grant },
  };
}

/** The most masters that were checked in one turn of the event loop. */
async function mostAtOnce(checks: () => number, work: Promise<unknown>): Promise<number> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  let [most, before] = [0, 0];
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, checks() - before);
    before = checks();
  }
  await over;
  return most;
}

test('other work runs while the masters that a delegate has lost are searched', async () => {
  for (const held of [null, masterIds[0] ?? '']) {
    const { mayRead, checks } = delegateOf(held);
    const sees = mayRead();
    expect(await mostAtOnce(checks, sees)).toBeLessThanOrEqual(200);
    expect([await sees, checks()]).toEqual([held !== null, masterIds.length]);
  }
  const { reading, checks } = delegateOf(null);
  const seen = reading.visibleLedger(unboundedWalk(), ledgerId, delegateId).catch((error: unknown) => error);
  expect(await mostAtOnce(checks, seen)).toBeLessThanOrEqual(200);
  expect(await seen).toMatchObject({ code: 'not_found' });
});

test('a delegate of 10,000 masters is told by the first that it reads', async () => {
  const { mayRead, checks } = delegateOf(masterIds.at(-1) ?? '');
  expect(await mayRead()).toBe(true);
  expect(checks()).toBe(1);
});

test('checks that come at once, and later ones, search the masters once', async () => {
  const { mayRead, checks } = delegateOf(masterIds[0] ?? '');
  expect(await Promise.all(Array.from({ length: 50 }, mayRead))).toEqual(Array.from({ length: 50 }, () => true));
  expect(checks()).toBeLessThan(masterIds.length + 100);
  const before = checks();
  for (let more = 0; more < 50; more++) expect(await mayRead()).toBe(true);
  expect(checks() - before).toBe(50);
});

test('a remembered master whose grant has ended gives no access, and the next one is found', async () => {
  const [first = '', second = ''] = masterIds;
  const { mayRead, change, granted } = delegateOf(first);
  expect(await mayRead()).toBe(true);
  change(second, granted);
  change(first, ended);
  expect(await mayRead()).toBe(true);
  change(second, ended);
  expect(await mayRead()).toBe(false);
});

test('a remembered master whose grant runs out gives no access from then on', async () => {
  const [first = ''] = masterIds;
  const { mayRead, clock } = delegateOf(first, [first], { expiresAt: '1970-01-01T00:00:10.000Z' });
  expect(await mayRead()).toBe(true);
  clock.ms = 9_999;
  expect(await mayRead()).toBe(true);
  clock.ms = 10_000;
  expect(await mayRead()).toBe(false);
});

test('that no grant is in force is remembered for seconds, while the ledger has no new event', async () => {
  const { mayRead, checks, clock, change, granted } = delegateOf(null);
  expect(await Promise.all([mayRead(), mayRead(), mayRead()])).toEqual([false, false, false]);
  expect(checks()).toBe(masterIds.length);
  change(masterIds[0] ?? '', granted);
  expect(await mayRead()).toBe(true);
  change(masterIds[0] ?? '', ended);
  expect(await mayRead()).toBe(false);
  const before = checks();
  expect([await mayRead(), checks()]).toEqual([false, before]);
  clock.ms += 10_000;
  expect([await mayRead(), checks()]).toEqual([false, before + masterIds.length]);
});

test('that no grant is in force is not remembered while the change by a newer event cannot be read', async () => {
  const { mayRead, log, change, granted } = delegateOf(null, masterIds.slice(0, 3));
  // The log has the event that grants a master. What it changes is written later.
  log.seq = 1;
  log.projectedBefore = 1;
  expect(await mayRead()).toBe(false);
  log.seq = 0;
  change(masterIds[0] ?? '', granted);
  expect(await mayRead()).toBe(true);
});

test('that no grant is in force is not remembered where it is not known what can be read', async () => {
  const { reading, store, checks } = delegateOf(null, masterIds.slice(0, 3));
  const masterStore = { lines: store.lines, cell: store.cell };
  for (const checked of [3, 6]) {
    expect(await reading.mayReadEvent(delegateId, ledgerId, null, masterStore)).toBe(false);
    expect(checks()).toBe(checked);
  }
});

test('that no grant is in force is remembered from the end of a slow search on', async () => {
  const { mayRead, checks, pace } = delegateOf(null);
  pace.pageMs = 100;
  expect(await Promise.all([mayRead(), mayRead(), mayRead()])).toEqual([false, false, false]);
  expect(checks()).toBe(masterIds.length);
});

test('a remembered master counts while it is one of the newest 10,000', async () => {
  const { mayRead, change } = delegateOf(masterIds[1] ?? '');
  expect(await mayRead()).toBe(true);
  change('0199cccc-0000-7000-8000-000000010000', ended);
  expect(await mayRead()).toBe(true);
  change('0199cccc-0000-7000-8000-000000010001', ended);
  expect(await mayRead()).toBe(false);
});

test('of more masters than are searched, a delegate sees the newest', async () => {
  const more = [...masterIds, '0199cccc-0000-7000-8000-000000010000', '0199cccc-0000-7000-8000-000000010001'];
  for (const held of more.slice(-2)) {
    const { reading, mayRead } = delegateOf(held, more);
    expect(await mayRead()).toBe(true);
    expect(await reading.visibleLedger(unboundedWalk(), ledgerId, delegateId)).toMatchObject({ masters: [held] });
  }
});

test('the list of a delegate shows a ledger for the grants by which the ledger itself can be read', async () => {
  const more = [...masterIds, '0199cccc-0000-7000-8000-000000010000'];
  for (const masters of [more, masterIds, masterIds.slice(0, 3)]) {
    for (const held of masters.slice(0, 2)) {
      const { reading } = delegateOf(held, masters);
      const walk = unboundedWalk();
      const isSeen = await reading.visibleLedger(walk, ledgerId, delegateId).then(
        () => true,
        () => false,
      );
      const line = { ledgerId, role: 'delegate', scope: 'master', objectId: held } as const;
      expect(isSeen).toBe(masters !== more || held !== masterIds[0]);
      expect(await reading.grantCheck(walk, delegateId)(line)).toBe(isSeen);
    }
  }
});

test('a follower holds of a grant what is decided on, and not its permissions', async () => {
  const { reading } = delegateOf(masterIds[1] ?? '', masterIds.slice(0, 2), { permissions: 'x'.repeat(1_000_000) });
  const facts = await reading.ledgerFacts(ledgerId);
  if (facts === null) throw new Error('no ledger');
  const held = await reading.heldGrants(unboundedWalk(), facts, delegateId, null);
  expect(held.map(({ grant }) => grant)).toEqual([null, { role: 'AUDITOR', access: 'read', expiresAt: null }, null]);
});
