import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { FindPage, Lookup, PutResult, RecordWrite } from '../../src/store/record-store.ts';
import type { OpenStores, StoreFactory } from './stores.ts';

/** Versioned records, their look-ups and their end. */
export function recordContract(stores: () => OpenStores, factory: StoreFactory): void {
  const store = () => stores().records;
  const newKind = () => `kind-${randomUUID()}`;
  const write = (over: Partial<RecordWrite> & { kind: string }): RecordWrite => ({
    id: 'id',
    replaces: 'absent',
    value: '{}',
    lookups: [],
    ...over,
  });
  const found = async (kind: string, lookup: { name: string; value: string }, page: FindPage = { limit: 100 }) =>
    (await store().find(kind, lookup, page)).map(({ id }) => id);

  test('a record is read as it was put, also after a restart', async () => {
    const kind = newKind();
    const version = versionOf(await store().put(write({ kind, value: '{"a":"ü\\n😀"}' })));
    const expected = { kind, id: 'id', version, value: '{"a":"ü\\n😀"}' };
    expect(await store().get(kind, 'id')).toEqual(expected);
    expect(await (await factory.reopen()).records.get(kind, 'id')).toEqual(expected);
    expect(await store().get(kind, 'other')).toBeNull();
    expect(await store().get(newKind(), 'id')).toBeNull();
  });

  test('a put that expects no record writes nothing over one and returns it', async () => {
    const kind = newKind();
    const version = versionOf(await store().put(write({ kind, value: '1' })));
    const conflict = await store().put(write({ kind, value: '2', lookups: [look('n', 'v')] }));
    expect(conflict).toEqual({ ok: false, current: { kind, id: 'id', version, value: '1' } });
    expect((await store().get(kind, 'id'))?.value).toBe('1');
    expect(await found(kind, { name: 'n', value: 'v' })).toEqual([]);
  });

  test('a put that replaces a missing version writes nothing', async () => {
    const kind = newKind();
    expect(await store().put(write({ kind, replaces: '1' }))).toEqual({ ok: false, current: null });
    const first = versionOf(await store().put(write({ kind, value: '1' })));
    const second = versionOf(await store().put(write({ kind, value: '2', replaces: first })));
    expect(second).not.toBe(first);
    expect(await store().put(write({ kind, value: '3', replaces: first }))).toMatchObject({ ok: false });
    expect(await store().put(write({ kind, value: '3', replaces: '' }))).toMatchObject({ ok: false });
    expect((await store().get(kind, 'id'))?.value).toBe('2');
  });

  test.each(['absent', 'a version'])('of 100 concurrent puts that replace %s, one is written', async (what) => {
    const kind = newKind();
    const replaces = what === 'absent' ? 'absent' : versionOf(await store().put(write({ kind, value: 'old' })));
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, writer) =>
        store().put(write({ kind, replaces, value: `${writer}`, lookups: [look('writer', `${writer}`)] })),
      ),
    );
    const winners = results.flatMap((result, writer) => (result.ok ? [{ writer, version: result.version }] : []));
    expect(winners.length).toBe(1);
    const [winner] = winners;
    const stored = await store().get(kind, 'id');
    expect(stored).toMatchObject({ version: winner?.version, value: `${winner?.writer}` });
    for (const result of results) if (!result.ok) expect(result.current).toEqual(stored);
    const lists = await Promise.all(results.map((_, writer) => found(kind, { name: 'writer', value: `${writer}` })));
    expect(lists.map((list) => list.length).indexOf(1)).toBe(winner?.writer);
    expect(lists.flat()).toEqual(['id']);
  });

  test('100 concurrent read-and-replace loops lose no update', async () => {
    const kind = newKind();
    await store().put(write({ kind, value: '0' }));
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        for (;;) {
          const current = await store().get(kind, 'id');
          const value = String(Number(current?.value) + 1);
          if ((await store().put(write({ kind, value, replaces: current?.version ?? '' }))).ok) return;
        }
      }),
    );
    expect((await store().get(kind, 'id'))?.value).toBe('100');
  });

  test('a put replaces all look-ups of its record at once', async () => {
    const kind = newKind();
    const lookups = [look('kept', 'k', '1'), look('moved', 'm', '1'), look('gone', 'g', '1')];
    const version = versionOf(await store().put(write({ kind, lookups })));
    const next = [look('kept', 'k', '1'), look('moved', 'm', '2'), look('new', 'n', '1')];
    await store().put(write({ kind, replaces: version, lookups: next, value: '2' }));
    expect(await store().find(kind, { name: 'moved', value: 'm' }, { limit: 9 })).toMatchObject([
      { order: '2', value: '2' },
    ]);
    expect(await found(kind, { name: 'kept', value: 'k' })).toEqual(['id']);
    expect(await found(kind, { name: 'new', value: 'n' })).toEqual(['id']);
    expect(await found(kind, { name: 'gone', value: 'g' })).toEqual([]);
  });

  test('find sorts by the bytes of order and id, and pages in both directions', async () => {
    const kind = newKind();
    const pairs = [
      ['2', 'a'],
      ['1', 'b'],
      ['1', 'a'],
      ['1!', 'a'],
      ['3', 'é'],
      ['3', '\uE000'],
      ['3', '\u{1F600}'],
    ] as const;
    for (const [order, id] of pairs)
      await store().put(write({ kind, id: `${id}${order}`, lookups: [look('n', 'v', order), look('n', 'w', '0')] }));
    const sorted = ['a1', 'b1', 'a1!', 'a2', 'é3', '\uE0003', '\u{1F600}3'];
    const list = { name: 'n', value: 'v' };
    expect(await found(kind, list)).toEqual(sorted);
    expect(await found(kind, list, { limit: 100, descending: true })).toEqual(sorted.toReversed());
    expect(await found(kind, list, { limit: 2, offset: 2 })).toEqual(sorted.slice(2, 4));
    expect(await found(kind, list, { limit: 2, offset: 2, descending: true })).toEqual(sorted.toReversed().slice(2, 4));
    expect(await found(kind, list, { limit: 2, after: { order: '1', id: 'b1' } })).toEqual(['a1!', 'a2']);
    expect(await found(kind, list, { limit: 2, after: { order: '1', id: 'b' } })).toEqual(['b1', 'a1!']);
    expect(await found(kind, list, { limit: 2, offset: 1, after: { order: '1', id: 'b1' } })).toEqual(['a2', 'é3']);
    const down = { limit: 2, offset: 1, after: { order: '2', id: 'a2' }, descending: true };
    expect(await found(kind, list, down)).toEqual(['b1', 'a1']);
    expect(await found(kind, list, { limit: 9, after: { order: '1!', id: 'a1!' }, descending: true })).toEqual([
      'b1',
      'a1',
    ]);
    expect(await found(kind, list, { limit: 9, before: '2' })).toEqual(['a1', 'b1', 'a1!']);
    expect(await found(kind, list, { limit: 9, after: { order: '1', id: 'a1' }, before: '2' })).toEqual(['b1', 'a1!']);
    expect(await found(kind, list, { limit: 1, after: { order: '1', id: 'a1' }, before: '2' })).toEqual(['b1']);
    expect(await found(kind, list, { limit: 9, before: '1' })).toEqual([]);
    expect(await found(kind, list, { limit: 9, after: { order: '2', id: '' }, before: '2!' })).toEqual(['a2']);
    expect(await found(kind, list, { limit: 9, after: { order: 'x'.repeat(9000), id: '' } })).toEqual([]);
    expect(await found(kind, list, { limit: 0 })).toEqual([]);
    expect(await found(kind, { name: 'n', value: 'W' })).toEqual([]);
    expect(await found(newKind(), list)).toEqual([]);
  });

  test('a page ends soon behind its bound in characters, and the next page continues', async () => {
    const kind = newKind();
    const ids = Array.from({ length: 60 }, (_, at) => String(at).padStart(3, '0'));
    const lookup = look('n', 'v');
    for (const id of ids) await store().put(write({ kind, id, value: `"${'x'.repeat(400)}"`, lookups: [lookup] }));
    const all: string[] = [];
    for (let after: FindPage['after']; ; ) {
      const page = { limit: 100, charsMax: 1_000, ...(after === undefined ? {} : { after }) };
      const part = await store().find(kind, lookup, page);
      expect(part.length).toBeLessThanOrEqual(20);
      all.push(...part.map(({ id }) => id));
      after = part.at(-1);
      if (part.reduce((chars, { value }) => chars + value.length, 0) < 1_000) break;
    }
    expect(all).toEqual(ids);
  });

  test('look-ups with different names and values are separate', async () => {
    const kind = newKind();
    const texts = ['', 'a', 'A', 'a|b', '"', 'ü', '\0', '\u{1F600}', 'x'.repeat(5000), `${'x'.repeat(5000)}y`];
    const names = texts.flatMap((name) => texts.map((value) => ({ name, value })));
    for (const [at, lookup] of names.entries())
      await store().put(write({ kind, id: `${at}`, lookups: [{ ...lookup, order: '' }] }));
    for (const [at, lookup] of names.entries()) expect(await found(kind, lookup)).toEqual([`${at}`]);
  });

  test('remove deletes its version with the look-ups once', async () => {
    const kind = newKind();
    const version = versionOf(await store().put(write({ kind, lookups: [look('n', 'v')] })));
    expect(await store().remove(kind, 'id', 'absent')).toBe(false);
    expect(await store().remove(kind, 'other', version)).toBe(false);
    const removals = await Promise.all(Array.from({ length: 20 }, () => store().remove(kind, 'id', version)));
    expect(removals.filter((removed) => removed).length).toBe(1);
    expect(await store().get(kind, 'id')).toBeNull();
    expect(await found(kind, { name: 'n', value: 'v' })).toEqual([]);
  });

  test('a version is never used again, not even after a removal and a restart', async () => {
    const kind = newKind();
    const first = versionOf(await store().put(write({ kind, value: 'first' })));
    await store().remove(kind, 'id', first);
    await factory.reopen();
    const second = versionOf(await store().put(write({ kind, value: 'second' })));
    expect(second).not.toBe(first);
    expect(await store().put(write({ kind, replaces: first, value: 'late' }))).toMatchObject({ ok: false });
    expect(await store().remove(kind, 'id', first)).toBe(false);
    expect((await store().get(kind, 'id'))?.value).toBe('second');
  });

  test('a sweep removes what has expired, with its look-ups, and nothing else', async () => {
    await store().sweep(Number.MAX_SAFE_INTEGER, 1000);
    const kind = newKind();
    for (const expiresAt of [1000, 2000, 3000])
      await store().put(write({ kind, id: `${expiresAt}`, expiresAt, lookups: [look('n', 'v', `${expiresAt}`)] }));
    await store().put(write({ kind, id: 'never', lookups: [look('n', 'v', 'z')] }));
    expect((await store().sweep(1000, 100)).removed).toBe(0);
    expect((await store().sweep(2001, 1)).removed).toBe(1);
    expect((await store().sweep(2001, 100)).removed).toBe(1);
    expect((await store().sweep(2001, 100)).removed).toBe(0);
    expect(await found(kind, { name: 'n', value: 'v' })).toEqual(['3000', 'never']);
    expect((await store().sweep(Number.MAX_SAFE_INTEGER, 100)).removed).toBe(1);
    expect(await found(kind, { name: 'n', value: 'v' })).toEqual(['never']);
  });

  test('a sweep reports the age of what is left, and continues until nothing is left', async () => {
    for (let left: number | null = 0; left !== null; )
      left = (await store().sweep(Number.MAX_SAFE_INTEGER, 1000)).oldestLeft;
    const kind = newKind();
    const expiries = Array.from({ length: 150 }, (_, at) => 60_000 + at * 300);
    await Promise.all(expiries.map((expiresAt) => store().put(write({ kind, id: `${expiresAt}`, expiresAt }))));
    const now = 60_000 + 140 * 300;
    let removed = 0;
    for (const limit of [30, 5, 100]) {
      const swept = await store().sweep(now, limit);
      expect(swept.removed).toBe(limit);
      removed += limit;
      expect(swept.oldestLeft).not.toBeNull();
      expect(swept.oldestLeft).toBeLessThanOrEqual(expiries[removed] ?? 0);
      expect(swept.oldestLeft).toBeGreaterThanOrEqual(60_000);
      expect(await store().get(kind, `${expiries[removed - 1]}`)).toBeNull();
      expect(await store().get(kind, `${expiries[removed]}`)).not.toBeNull();
    }
    expect(await store().sweep(now, 100)).toEqual({ removed: 5, oldestLeft: null });
    expect(await store().sweep(now, 100)).toEqual({ removed: 0, oldestLeft: null });
    expect(await store().get(kind, `${now}`)).not.toBeNull();
    expect(await store().sweep(Number.MAX_SAFE_INTEGER, 100)).toEqual({ removed: 10, oldestLeft: null });
  });

  test('an expiry that a put moved or removed no longer counts', async () => {
    const kind = newKind();
    const moved = versionOf(await store().put(write({ kind, id: 'moved', expiresAt: 1000 })));
    const kept = versionOf(await store().put(write({ kind, id: 'kept', expiresAt: 1000 })));
    await store().put(write({ kind, id: 'moved', replaces: moved, expiresAt: 5000 }));
    await store().put(write({ kind, id: 'kept', replaces: kept }));
    expect((await store().sweep(2000, 100)).removed).toBe(0);
    expect((await store().sweep(6000, 100)).removed).toBe(1);
    expect(await store().get(kind, 'kept')).not.toBeNull();
  });

  test('longer ids and orders than the limit are refused on writes and unknown to reads', async () => {
    const kind = newKind();
    const id = '\u{1F600}'.repeat(256);
    await store().put(write({ kind, id, lookups: [look('n', 'v', 'ü'.repeat(256))] }));
    expect(await found(kind, { name: 'n', value: 'v' })).toEqual([id]);
    expect(await store().get(kind, id)).toMatchObject({ id });
    for (const wrong of ['', `${id}x`, 'a\0b', '\uD800'])
      await expect(store().put(write({ kind, id: wrong }))).rejects.toBeInstanceOf(RangeError);
    for (const order of ['x'.repeat(513), 'a\0', '\uDC00'])
      await expect(store().put(write({ kind, lookups: [look('n', 'v', order)] }))).rejects.toBeInstanceOf(RangeError);
    const twice = write({ kind, lookups: [look('n', 'v', '1'), look('n', 'v', '2')] });
    await expect(store().put(twice)).rejects.toBeInstanceOf(TypeError);
    expect(await store().get(kind, `${id}x`)).toBeNull();
    expect(await store().get(kind, '')).toBeNull();
    expect(await store().remove(kind, `${id}x`, '1')).toBe(false);
  });
}

function look(name: string, value: string, order = '0'): Lookup {
  return { name, value, order };
}

function versionOf(result: PutResult): string {
  if (!result.ok) throw new Error(`Not written; there is ${JSON.stringify(result.current)}`);
  return result.version;
}
