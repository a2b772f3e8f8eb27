import { expect, test } from 'vitest';
import type { Projection } from '../../src/domain/event/projection.ts';
import type { Claim, LedgerEntry, Line, Snapshot, StoredEntry } from '../../src/store/ledger-store.ts';
import { entriesAfter, entriesFor, hashOf, headOf, newLedgerId } from '../support/store-entries.ts';
import type { OpenStores, StoreFactory, TestClock } from './stores.ts';

const HOUR_MS = 60 * 60 * 1000;
const oddTexts = ['ledger:ü', '企業', '😀', '\u{1F600}\uE000', 'a b\tc', `"\\'%`, `long ${'x'.repeat(5000)}`, ''];

/** What is read back, and by which names. */
export function readContract(stores: () => OpenStores, factory: StoreFactory, clock: TestClock): void {
  const store = () => stores().ledgers;

  async function ledgerOf(count: number, projections: (seq: number) => readonly Projection[] = () => []) {
    const claim = await store().claim(newLedgerId());
    const entries = entriesFor(claim, count, { projections });
    await store().append(claim, entries);
    return { claim, ledgerId: claim.ledgerId, entries };
  }

  test('a read starts at its seq, keeps the order and stops at its limit', async () => {
    const { ledgerId, entries } = await ledgerOf(300);
    await ledgerOf(5);
    const seqs = async (from: number, limit: number) =>
      (await store().read(ledgerId, from, limit)).map(({ seq }) => seq);
    expect(await seqs(0, 1000)).toEqual(entries.map(({ seq }) => seq));
    expect(await seqs(255, 3)).toEqual([255, 256, 257]);
    expect(await seqs(299, 10)).toEqual([299]);
    expect(await seqs(300, 10)).toEqual([]);
    expect(await seqs(0, 0)).toEqual([]);
  });

  test('a page ends soon behind its bound in characters, and the next page continues', async () => {
    const claim = await store().claim(newLedgerId());
    const row = (seq: number) => `${seq} ${'x'.repeat(seq % 3 === 0 ? 900 : 10)}`;
    const projections = (seq: number): readonly Projection[] => [
      { kind: 'scope', scope: 's' },
      { kind: 'line', list: `list of ${claim.ledgerId}`, order: String(seq).padStart(4, '0'), value: row(seq) },
    ];
    const entries = entriesFor(claim, 200, { row, projections });
    await store().append(claim, entries);
    const { ledgerId } = claim;
    const charsMax = 1_000;
    const all = entries.map(({ seq }) => ({ seq, row: row(seq) }));
    type Entry = (typeof all)[number];
    /** Reads pages, each from behind the last one, until a page has too few characters. */
    const walk = async (read: (from: number) => Promise<readonly Entry[]>, first: number, step: number) => {
      const found: Entry[] = [];
      for (let from = first; ; from = (found.at(-1)?.seq ?? 0) + step) {
        const page = await read(from);
        expect(page.length).toBeLessThanOrEqual(130);
        found.push(...page);
        if (page.reduce((chars, entry) => chars + entry.row.length, 0) < charsMax) return found;
      }
    };
    const limit = 500;
    expect(await walk((from) => store().read(ledgerId, from, limit, charsMax), 0, 1)).toEqual(all);
    const scope = (descending: boolean) => async (from: number) =>
      (await store().readScope(ledgerId, 's', { from, limit, descending, charsMax })).entries;
    expect(await walk(scope(false), 0, 1)).toEqual(all);
    expect(await walk(scope(true), 199, -1)).toEqual(all.toReversed());
    const lines = (descending: boolean) => async (from: number) => {
      const page = { from: String(from).padStart(4, '0'), limit, descending, charsMax };
      const found = await store().lines(`list of ${ledgerId}`, page);
      return found.map(({ order, value }) => ({ seq: Number(order), row: value }));
    };
    expect(await walk(lines(false), 0, 1)).toEqual(all);
    expect(await walk(lines(true), 199, -1)).toEqual(all.toReversed());
    expect((await store().read(ledgerId, 0, 1, 1)).length).toBe(1);
  });

  test('a page has at most its characters and one entry, also where entries become large in the middle', async () => {
    const claim = await store().claim(newLedgerId());
    const [charsMax, largeChars] = [1_000, 250];
    const row = (seq: number) => (seq < 56 || seq % 50 > 40 ? `${seq}` : String(seq).padEnd(largeChars, 'x'));
    const list = `list of ${claim.ledgerId}`;
    const orderOf = (seq: number) => String(seq).padStart(4, '0');
    const projections = (seq: number): readonly Projection[] => [
      { kind: 'scope', scope: 's' },
      { kind: 'line', list, order: orderOf(seq), value: row(seq) },
    ];
    const entries = entriesFor(claim, 256, { row, projections });
    await store().append(claim, entries);
    const { ledgerId } = claim;
    const all = entries.map(({ seq }) => ({ seq, row: row(seq) }));
    const scope = (from: number, descending: boolean) =>
      store().readScope(ledgerId, 's', { from, limit: 250, descending, charsMax });
    const lines = (from: number, descending: boolean) =>
      store().lines(list, { from: orderOf(from), limit: 250, descending, charsMax });
    const ways = {
      'the log': { step: 1, read: (from: number) => store().read(ledgerId, from, 250, charsMax) },
      'a scope': { step: 1, read: async (from: number) => (await scope(from, false)).entries },
      'a scope, descending': { step: -1, read: async (from: number) => (await scope(from, true)).entries },
      'a list': { step: 1, read: async (from: number) => (await lines(from, false)).map(entryOfLine) },
      'a list, descending': { step: -1, read: async (from: number) => (await lines(from, true)).map(entryOfLine) },
    };
    for (const [name, { step, read }] of Object.entries(ways)) {
      const found: typeof all = [];
      for (let from = step > 0 ? 0 : 255; from >= 0 && from < 256; from = (found.at(-1)?.seq ?? 0) + step) {
        const page = await read(from);
        const chars = page.reduce((sum, entry) => sum + entry.row.length, 0);
        expect(chars, `${name} from ${from}`).toBeLessThan(charsMax + largeChars);
        expect(page.length, `${name} from ${from}`).toBeGreaterThan(0);
        if (chars < charsMax && page.length < 250) expect(page.at(-1)?.seq, name).toBe(step > 0 ? 255 : 0);
        found.push(...page);
      }
      expect(found, name).toEqual(step > 0 ? all : all.toReversed());
    }
  });

  test('rows come back byte for byte, whatever they hold', async () => {
    const claim = await store().claim(newLedgerId());
    const rows = [...oddTexts.filter((text) => text !== ''), '\0', 'line\nline', '\uFEFFbom', 'é'.repeat(200_000)];
    await store().append(claim, entriesFor(claim, rows.length, { row: (seq) => rows[seq] ?? '' }));
    const again = (await factory.reopen()).ledgers;
    expect((await again.read(claim.ledgerId, 0, 100)).map(({ row }) => row)).toEqual(rows);
  });

  test('ledgers with neighbouring ids or other texts as ids are separate', async () => {
    const base = newLedgerId().slice(0, -1);
    const ids = [`${base}0`, `${base}1`, `${base}1`.toUpperCase(), ...oddTexts.map((text) => `${base}${text}`)];
    for (const ledgerId of new Set(ids)) {
      const claim = await store().claim(ledgerId);
      expect(claim.head).toBeNull();
      await store().append(claim, entriesFor(claim, 1, { row: () => `of ${ledgerId}` }));
    }
    for (const ledgerId of ids)
      expect(await store().read(ledgerId, 0, 10)).toEqual([{ seq: 0, row: `of ${ledgerId}` }]);
  });

  test('a hole in the log is a hole in a read and missing in its scope', async () => {
    const { ledgerId, entries } = await ledgerOf(5, () => [{ kind: 'scope', scope: 's' }]);
    const again = (await factory.loseRow(ledgerId, 2)).ledgers;
    expect((await again.read(ledgerId, 0, 10)).map(({ seq }) => seq)).toEqual([0, 1, 3, 4]);
    expect((await again.read(ledgerId, 2, 1)).map(({ seq }) => seq)).toEqual([3]);
    expect(await again.head(ledgerId)).toEqual(headOf(entries));
    const page = await again.readScope(ledgerId, 's', { limit: 4 });
    expect(page.missing).toEqual([2]);
    expect(page.entries.map(({ seq }) => seq)).toEqual([0, 1, 3]);
    expect(await again.scopeSeqs(ledgerId, 's', { limit: 4 })).toEqual([0, 1, 2, 3]);
  });

  test('the events of a scope are paged in both directions from any seq', async () => {
    const master = `master:${newLedgerId()}`;
    const { ledgerId } = await ledgerOf(20, (seq) => [{ kind: 'scope', scope: seq % 3 === 0 ? master : 'other' }]);
    const seqs = async (page: { from?: number; limit: number; descending?: boolean }) => {
      const found = (await store().readScope(ledgerId, master, page)).entries.map(({ seq }) => seq);
      expect(await store().scopeSeqs(ledgerId, master, page)).toEqual(found);
      return found;
    };
    expect(await seqs({ limit: 100 })).toEqual([0, 3, 6, 9, 12, 15, 18]);
    expect(await seqs({ limit: 2, from: 6 })).toEqual([6, 9]);
    expect(await seqs({ limit: 2, from: 7 })).toEqual([9, 12]);
    expect(await seqs({ limit: 100, from: 19 })).toEqual([]);
    expect(await seqs({ limit: 3, descending: true })).toEqual([18, 15, 12]);
    expect(await seqs({ limit: 9, descending: true, from: 9 })).toEqual([9, 6, 3, 0]);
    expect(await seqs({ limit: 1, descending: true, from: 8 })).toEqual([6]);
    expect(await seqs({ limit: 0 })).toEqual([]);
    expect((await store().readScope(ledgerId, master, { limit: 1 })).entries[0]?.row).toBe('row 0 ');
  });

  test('scopes are separate within and between ledgers', async () => {
    const id = newLedgerId();
    const scopes = [`master:${id}`, `own:${id}`, id, `x${id}`, `master:${id}x`, `ü${id}`, ...oddTexts];
    const { ledgerId } = await ledgerOf(scopes.length, (seq) => [{ kind: 'scope', scope: scopes[seq] ?? '' }]);
    const other = await ledgerOf(1, () => [{ kind: 'scope', scope: `master:${id}` }]);
    for (const [seq, scope] of scopes.entries())
      expect((await store().readScope(ledgerId, scope, { limit: 9 })).entries.map((entry) => entry.seq)).toEqual([seq]);
    expect((await store().readScope(other.ledgerId, `own:${id}`, { limit: 9 })).entries).toEqual([]);
  });

  test('a command is found in its ledger with fingerprint and seq once its append is answered', async () => {
    const ids = ['k', hashOf('k'), hashOf('k').toUpperCase(), ...oddTexts];
    const { ledgerId } = await ledgerOf(ids.length, (seq) => [commandOf(ids[seq] ?? '', seq % 2 === 0)]);
    const commandKeys = ids.map((id, seq) => ({ id, permanent: seq % 2 === 0 }));
    const unknown = [true, false].map((permanent) => ({ id: 'unknown', permanent }));
    const found = await store().findCommands(ledgerId, [...commandKeys, ...unknown]);
    expect(found.size).toBe(ids.length);
    for (const [seq, id] of ids.entries()) expect(found.get(id)).toEqual({ seq, fingerprint: `f ${id}` });
    const otherwise = commandKeys.map(({ id, permanent }) => ({ id, permanent: !permanent }));
    expect(await store().findCommands(ledgerId, otherwise)).toEqual(new Map());
    expect(await store().findCommands(newLedgerId(), commandKeys)).toEqual(new Map());
    expect(await store().findCommands(ledgerId, [])).toEqual(new Map());
  });

  test('a command is found for 24 hours, a permanent one for ever, also after a restart', async () => {
    const { claim, ledgerId, entries } = await ledgerOf(2, (seq) => [commandOf(`c${seq}`, seq === 1)]);
    clock.nowMs += 23 * HOUR_MS;
    await store().append(claim, entriesAfter(headOf(entries), 1, { projections: () => [commandOf('later', false)] }));
    const again = (await factory.reopen()).ledgers;
    const early = await again.findCommands(ledgerId, [
      { id: 'c0', permanent: false },
      { id: 'c1', permanent: true },
      { id: 'later', permanent: false },
    ]);
    expect([...early.keys()].sort()).toEqual(['c0', 'c1', 'later']);
    clock.nowMs += 365 * 24 * HOUR_MS;
    const newer = await again.claim(ledgerId);
    await again.append(newer, entriesFor(newer, 1, { projections: () => [commandOf('c9', false)] }));
    const found = await again.findCommands(ledgerId, [
      { id: 'c1', permanent: true },
      { id: 'c9', permanent: false },
    ]);
    expect(found.get('c1')).toEqual({ seq: 1, fingerprint: 'f c1' });
    expect(found.get('c9')?.seq).toBe(3);
  });

  test('a cell has the value of the newest event that wrote it', async () => {
    const key = `cell ${newLedgerId()}`;
    expect(await store().cell(key)).toBeNull();
    const { claim, entries } = await ledgerOf(3, (seq) => [{ kind: 'cell', key, value: `v${seq}` }]);
    expect(await store().cell(key)).toEqual({ version: 2, value: 'v2' });
    await store().append(claim, entriesAfter(headOf(entries), 1));
    expect(await store().cell(key)).toEqual({ version: 2, value: 'v2' });
  });

  test('an older cell never replaces a newer one, and the same one is written again', async () => {
    const key = `cell ${newLedgerId()}`;
    await ledgerOf(4, (seq) => (seq === 3 ? [{ kind: 'cell', key, value: 'new' }] : []));
    // In service a cell belongs to one ledger. Here a second ledger writes an old version late.
    await ledgerOf(3, () => [{ kind: 'cell', key, value: 'old' }]);
    expect(await store().cell(key)).toEqual({ version: 3, value: 'new' });
    await ledgerOf(4, (seq) => (seq === 3 ? [{ kind: 'cell', key, value: 'new' }] : []));
    expect(await store().cell(key)).toEqual({ version: 3, value: 'new' });
  });

  test('keys of cells and owners of snapshots may be any text', async () => {
    const keys = oddTexts.map((text) => `${newLedgerId()}${text}`);
    await ledgerOf(keys.length, (seq) => [{ kind: 'cell', key: keys[seq] ?? '', value: `v${seq}` }]);
    for (const [seq, key] of keys.entries()) {
      expect(await store().cell(key)).toEqual({ version: seq, value: `v${seq}` });
      await store().saveSnapshot(key, snapshotAt(seq));
    }
    for (const [seq, key] of keys.entries()) expect(await store().snapshot(key)).toEqual(snapshotAt(seq));
  });

  test('lines are sorted by the bytes of their order and paged in both directions', async () => {
    const list = `list ${newLedgerId()}`;
    const orders = ['b', 'a', 'aa', 'B', 'é', '\uE000', '\u{1F600}', 'a!', 'z'.repeat(512)];
    await ledgerOf(orders.length, (seq) => [{ kind: 'line', list, order: orders[seq] ?? '', value: `v${seq}` }]);
    await ledgerOf(1, () => [{ kind: 'line', list: `${list}x`, order: 'a', value: 'other list' }]);
    const sorted = ['B', 'a', 'a!', 'aa', 'b', 'z'.repeat(512), 'é', '\uE000', '\u{1F600}'];
    const read = async (page: Parameters<ReturnType<typeof store>['lines']>[1]) =>
      (await store().lines(list, page)).map(({ order }) => order);
    expect(await read({ limit: 100 })).toEqual(sorted);
    expect(await read({ limit: 100, descending: true })).toEqual(sorted.toReversed());
    expect(await read({ limit: 2, offset: 3 })).toEqual(sorted.slice(3, 5));
    expect(await read({ limit: 2, offset: 3, descending: true })).toEqual(sorted.toReversed().slice(3, 5));
    expect(await read({ limit: 2, from: 'a!' })).toEqual(['a!', 'aa']);
    expect(await read({ limit: 2, from: 'a"' })).toEqual(['aa', 'b']);
    expect(await read({ limit: 2, from: 'a"', descending: true })).toEqual(['a!', 'a']);
    expect(await read({ limit: 9, from: 'b', offset: 1 })).toEqual(sorted.slice(5));
    expect(await read({ limit: 1, from: 'z'.repeat(9000) })).toEqual(['é']);
    expect(await read({ limit: 9, offset: 9 })).toEqual([]);
    expect(await store().lines(list, { limit: 1 })).toEqual([{ order: 'B', value: 'v3' }]);
  });

  test.each([false, true])(
    'pages that begin behind the last line give each line once while others come in front (descending: %s)',
    async (descending) => {
      const list = `list ${newLedgerId()}`;
      const lineOf = (at: number): Projection => ({ kind: 'line', list, order: String(at), value: `v${at}` });
      await ledgerOf(9, (seq) => [lineOf(500 + seq)]);
      const found: string[] = [];
      let from: string | null = null;
      for (let round = 1; ; round += 1) {
        const lines = await store().lines(list, {
          limit: 2,
          descending,
          ...(from === null ? {} : { from, offset: 1 }),
        });
        found.push(...lines.map(({ value }) => value));
        from = lines.at(-1)?.order ?? null;
        if (from === null) break;
        await ledgerOf(1, () => [lineOf(descending ? 900 + round : 100 + round)]);
      }
      const all = Array.from({ length: 9 }, (_, seq) => `v${500 + seq}`);
      expect(found).toEqual(descending ? all.toReversed() : all);
    },
  );

  test('a line that is written twice is listed once', async () => {
    const list = `list ${newLedgerId()}`;
    const line: Projection = { kind: 'line', list, order: 'o', value: 'v' };
    await ledgerOf(3, () => [line]);
    await ledgerOf(1, () => [line]);
    expect(await store().lines(list, { limit: 9 })).toEqual([{ order: 'o', value: 'v' }]);
  });

  test('a line with an unsortable order is a RangeError and writes nothing', async () => {
    for (const order of ['', 'a\0b', 'x'.repeat(513), '\uD800']) {
      const claim = await store().claim(newLedgerId());
      const entries = entriesFor(claim, 2, { projections: () => [{ kind: 'line', list: 'l', order, value: 'v' }] });
      await expect(store().append(claim, entries)).rejects.toThrow(Error);
      await expectWritable(claim);
    }
  });

  async function expectWritable(claim: Claim): Promise<void> {
    expect(await store().head(claim.ledgerId)).toBeNull();
    const entries: LedgerEntry[] = entriesFor(claim, 1);
    await store().append(claim, entries);
  }

  test('a snapshot is kept over a restart, and an older one of its version does not replace it', async () => {
    const owner = newLedgerId();
    expect(await store().snapshot(owner)).toBeNull();
    await store().saveSnapshot(owner, snapshotAt(7));
    await store().saveSnapshot(owner, snapshotAt(6));
    expect(await store().snapshot(owner)).toEqual(snapshotAt(7));
    await store().saveSnapshot(owner, snapshotAt(8));
    await store().saveSnapshot(owner, { ...snapshotAt(3), foldVersion: 2 });
    expect(await (await factory.reopen()).ledgers.snapshot(owner)).toEqual({ ...snapshotAt(3), foldVersion: 2 });
  });

  test('of 50 concurrent snapshots the newest is kept', async () => {
    const owner = newLedgerId();
    const seqs = Array.from({ length: 50 }, (_, index) => (index * 7) % 50);
    await Promise.all(seqs.map((seq) => store().saveSnapshot(owner, snapshotAt(seq))));
    expect((await store().snapshot(owner))?.seq).toBe(49);
  });
}

function entryOfLine({ order, value }: Line): StoredEntry {
  return { seq: Number(order), row: value };
}

function commandOf(id: string, permanent: boolean): Projection {
  return { kind: 'command', command: { id, fingerprint: `f ${id}`, permanent } };
}

function snapshotAt(seq: number): Snapshot {
  return { foldVersion: 1, seq, hash: hashOf(`snapshot ${seq}`), state: `{"seq":${seq},"text":"ü\n"}` };
}
