import { expect, test } from 'vitest';
import { type Claim, Fenced, type LedgerEntry, type LedgerStore } from '../../src/store/ledger-store.ts';
import { entriesAfter, entriesFor, hashOf, headOf, newLedgerId } from '../support/store-entries.ts';
import type { OpenStores, StoreFactory } from './stores.ts';

/** Which claims may append, and that a refused append changes nothing: so a ledger cannot fork. */
export function appendContract(stores: () => OpenStores, factory: StoreFactory): void {
  const store = () => stores().ledgers;

  test('a new ledger has no head, and its claim says so', async () => {
    const ledgerId = newLedgerId();
    expect(await store().head(ledgerId)).toBeNull();
    const claim = await store().claim(ledgerId);
    expect(claim).toMatchObject({ ledgerId, head: null });
    expect(await store().stands(claim, null)).toBe(true);
    expect(await store().read(ledgerId, 0, 10)).toEqual([]);
  });

  test('appended events are the head, read as written, and kept over a restart', async () => {
    const ledgerId = newLedgerId();
    const claim = await store().claim(ledgerId);
    const first = entriesFor(claim, 3);
    await store().append(claim, first);
    const second = entriesAfter(headOf(first), 2);
    await store().append(claim, second);
    const written = [...first, ...second].map(({ seq, row }) => ({ seq, row }));
    const again = (await factory.reopen()).ledgers;
    expect(await again.head(ledgerId)).toEqual(headOf(second));
    expect(await again.read(ledgerId, 0, 10)).toEqual(written);
    expect((await again.claim(ledgerId)).head).toEqual(headOf(second));
  });

  test('a claim stays in force over a restart', async () => {
    const claim = await store().claim(newLedgerId());
    const entries = entriesFor(claim, 1);
    await store().append(claim, entries);
    const again = (await factory.reopen()).ledgers;
    expect(await again.stands(claim, headOf(entries))).toBe(true);
    await again.append(claim, entriesAfter(headOf(entries), 1));
  });

  test('an append under a claim that was just replaced writes nothing', async () => {
    const ledgerId = newLedgerId();
    const older = await store().claim(ledgerId);
    const entries = entriesFor(older, 2);
    await store().append(older, entries);
    const newer = await store().claim(ledgerId);
    await refused(store(), older, entriesAfter(headOf(entries), 1));
    expect(await store().stands(older, headOf(entries))).toBe(false);
    await store().append(newer, entriesFor(newer, 1));
    await refused(store(), older, entriesAfter(headOf(entries), 1));
  });

  test('an append under an older claim writes nothing, even the same events', async () => {
    const ledgerId = newLedgerId();
    const older = await store().claim(ledgerId);
    const newer = await store().claim(ledgerId);
    const entries = entriesFor(newer, 1);
    await store().append(newer, entries);
    await refused(store(), older, entriesAfter(headOf(entries), 1));
    await refused(store(), older, entries);
  });

  test('a concurrent append is written before a claim or never', async () => {
    const ledgerId = newLedgerId();
    for (let round = 0; round < 20; round++) {
      const older = await store().claim(ledgerId);
      const entries = entriesFor(older, 2, { salt: String(round) });
      const appended = store()
        .append(older, entries)
        .then(
          () => true,
          (error: unknown) => {
            expect(error).toBeInstanceOf(Fenced);
            return false;
          },
        );
      const newer = await store().claim(ledgerId);
      const landed = newer.head?.hash === headOf(entries).hash;
      expect(await appended).toBe(landed);
      expect(await store().head(ledgerId)).toEqual(newer.head);
    }
  });

  const wrongHeads: readonly [string, (claim: Claim, written: readonly LedgerEntry[]) => LedgerEntry[]][] = [
    ['a head long gone', (claim) => entriesFor(claim, 1)],
    ['a head one behind', (_claim, written) => entriesAfter(headOf(written.slice(0, -1)), 1)],
    ['a head that is not there yet', () => entriesAfter({ seq: 3, hash: hashOf('ahead') }, 1)],
    ['a head of the right seq and another hash', () => entriesAfter({ seq: 2, hash: hashOf('other') }, 1)],
    ['no head at all', () => entriesAfter(null, 1, { salt: 'second genesis' })],
  ];
  test.each(wrongHeads)('an append onto %s writes nothing, also under the newest claim', async (_name, make) => {
    const claim = await store().claim(newLedgerId());
    const written = entriesFor(claim, 3);
    await store().append(claim, written);
    await refused(store(), claim, make(claim, written));
  });

  test('a stale append writes none of its entries and none of their projections', async () => {
    const ledgerId = newLedgerId();
    const older = await store().claim(ledgerId);
    await store().claim(ledgerId);
    const name = `stale ${ledgerId}`;
    const entries = entriesFor(older, 3, {
      projections: (seq) => [
        { kind: 'scope', scope: name },
        { kind: 'command', command: { id: `${name} ${seq}`, fingerprint: 'f', permanent: seq === 1 } },
        { kind: 'cell', key: name, value: '1' },
        { kind: 'line', list: name, order: `o${seq}`, value: '1' },
      ],
    });
    await refused(store(), older, entries);
    expect(await store().readScope(ledgerId, name, { limit: 9 })).toEqual({ entries: [], missing: [] });
    const commandKeys = [0, 1].map((seq) => ({ id: `${name} ${seq}`, permanent: seq === 1 }));
    expect(await store().findCommands(ledgerId, commandKeys)).toEqual(new Map());
    expect(await store().cell(name)).toBeNull();
    expect(await store().lines(name, { limit: 9 })).toEqual([]);
  });

  test('an unknown fence is Fenced', async () => {
    const claim = await store().claim(newLedgerId());
    for (const fence of ['', '0', '-1', 'x', '1e3', `${claim.fence}0`, `${claim.fence}.0`, ` ${claim.fence}`])
      await refused(store(), { ...claim, fence }, entriesFor(claim, 1));
  });

  test('a claim of one ledger gives no right to another', async () => {
    const claim = await store().claim(newLedgerId());
    await refused(store(), { ...claim, ledgerId: newLedgerId() }, entriesFor(claim, 1));
  });

  const broken: readonly [string, (entries: LedgerEntry[]) => LedgerEntry[]][] = [
    ['no entries', () => []],
    ['a gap in seq', (entries) => entries.filter(({ seq }) => seq !== 1)],
    ['an entry twice', ([a, b]) => (a && b ? [a, b, b] : [])],
    ['a broken link', ([a, b]) => (a && b ? [a, { ...b, prevHash: hashOf('other') }] : [])],
    ['a hash that is none', ([a]) => (a ? [{ ...a, hash: 'ABC' }] : [])],
    ['an empty row', ([a]) => (a ? [{ ...a, row: '' }] : [])],
    ['a first entry with a hash before it', ([a]) => (a ? [{ ...a, prevHash: hashOf('x') }] : [])],
    ['a later entry with none', ([, b]) => (b ? [{ ...b, prevHash: '' }] : [])],
    ['a fraction of a seq', ([a]) => (a ? [{ ...a, seq: 0.5, prevHash: hashOf('x') }] : [])],
  ];
  test.each(broken)('an append of %s is a TypeError and writes nothing', async (_name, make) => {
    const claim = await store().claim(newLedgerId());
    await expect(store().append(claim, make(entriesFor(claim, 3)))).rejects.toBeInstanceOf(TypeError);
    expect(await store().head(claim.ledgerId)).toBeNull();
    await store().append(claim, entriesFor(claim, 1));
  });

  test('100 concurrent claims and appends make one sequence with each answered append once', async () => {
    const ledgerId = newLedgerId();
    const answered: string[] = [];
    const fencedTimes = await Promise.all(
      Array.from({ length: 100 }, async (_, writer) => {
        for (let fenced = 0; ; fenced++) {
          const claim = await store().claim(ledgerId);
          const entries = entriesFor(claim, 1 + (writer % 3), { salt: `${writer}` });
          try {
            await store().append(claim, entries);
            answered.push(...entries.map(({ row }) => row));
            return fenced;
          } catch (error) {
            expect(error).toBeInstanceOf(Fenced);
          }
        }
      }),
    );
    const log = await store().read(ledgerId, 0, 1000);
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index));
    expect(log.map(({ row }) => row).sort()).toEqual(answered.sort());
    expect(fencedTimes.length).toBe(100);
  });

  test('stands is true for the newest claim with its own head only', async () => {
    const claim = await store().claim(newLedgerId());
    const entries = entriesFor(claim, 2);
    await store().append(claim, entries);
    expect(await store().stands(claim, headOf(entries))).toBe(true);
    expect(await store().stands(claim, null)).toBe(false);
    expect(await store().stands(claim, headOf(entries.slice(0, 1)))).toBe(false);
    expect(await store().stands(claim, { seq: 1, hash: hashOf('other') })).toBe(false);
    await store().claim(claim.ledgerId);
    expect(await store().stands(claim, headOf(entries))).toBe(false);
  });

  test('the certain head is that of every answered append, of the first one too', async () => {
    const ledgerId = newLedgerId();
    expect(await store().certainHead(ledgerId)).toBeNull();
    const claim = await store().claim(ledgerId);
    expect(await store().certainHead(ledgerId)).toBeNull();
    for (let head = claim.head; (head?.seq ?? 0) < 12; ) {
      const entries = entriesAfter(head, 3);
      await store().append(claim, entries);
      head = headOf(entries);
      expect(await store().certainHead(ledgerId)).toEqual(head);
    }
    const again = (await factory.reopen()).ledgers;
    expect(await again.certainHead(ledgerId)).toEqual(await again.head(ledgerId));
  });

  test('an owner goes on appending while others ask for the certain head, and its claim stands', async () => {
    const claim = await store().claim(newLedgerId());
    let head = claim.head;
    for (let batch = 0; batch < 20; batch++) {
      const entries = entriesAfter(head, 2);
      const [, ...certain] = await Promise.all([
        store().append(claim, entries),
        ...Array.from({ length: 4 }, () => store().certainHead(claim.ledgerId)),
      ]);
      for (const one of certain) expect([head, headOf(entries)]).toContainEqual(one);
      head = headOf(entries);
      expect(await store().stands(claim, head)).toBe(true);
    }
  });

  test('later changes of the arguments change nothing in the store', async () => {
    const claim = await store().claim(newLedgerId());
    const [entry] = entriesFor(claim, 1);
    const list: { row: string }[] = entry === undefined ? [] : [entry];
    const appended = store().append(claim, list as LedgerEntry[]);
    for (const held of list) held.row = 'changed';
    await appended;
    expect(await store().read(claim.ledgerId, 0, 1)).toEqual([{ seq: 0, row: 'row 0 ' }]);
  });
}

async function refused(store: LedgerStore, claim: Claim, entries: readonly LedgerEntry[]): Promise<void> {
  const before = await store.read(claim.ledgerId, 0, 1000);
  const head = await store.head(claim.ledgerId);
  await expect(store.append(claim, entries)).rejects.toBeInstanceOf(Fenced);
  expect(await store.head(claim.ledgerId)).toEqual(head);
  expect(await store.read(claim.ledgerId, 0, 1000)).toEqual(before);
}
