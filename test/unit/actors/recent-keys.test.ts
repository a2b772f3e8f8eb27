import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RecentKeysMemory } from '../../../src/actors/ledger/recent-keys-memory.ts';
import { sha256Hex } from '../../../src/domain/keys/hash.ts';
import type { LedgerEntry } from '../../../src/store/ledger-store.ts';
import { commandKey } from '../../support/commands.ts';

const hourMs = 60 * 60_000;
/** What a ledger takes beside its filters, and the smallest filter. */
const [ledgerBytes, filterBytes] = [512, 1_024];

/** One entry whose hash is `hash`, with these commandKeys. */
function entry(hash: string, ids: readonly string[], permanent = false): LedgerEntry {
  const projections = ids.map((id) => ({ kind: 'command', command: commandKey(id, 'asked', permanent) }) as const);
  return { seq: 0, prevHash: '', hash, row: '', projections };
}

function ids(count: number, name = 'mark'): string[] {
  return Array.from({ length: count }, (_, n) => sha256Hex(`${name} ${n}`));
}

/** The writer of a ledger, which knows where the ledger ends as an actor does. */
class Writer {
  readonly #memory: RecentKeysMemory;
  readonly #ledgerId: string;
  #end = '';

  constructor(memory = new RecentKeysMemory(), ledgerId = 'ledger') {
    this.#memory = memory;
    this.#ledgerId = ledgerId;
  }

  get end(): string {
    return this.#end;
  }

  /** '': the ledger has no event. */
  claims(end: string, atMs = 0): this {
    this.#memory.of(this.#ledgerId).claimed(end === '' ? null : { seq: 0, hash: end }, atMs);
    this.#end = end;
    return this;
  }

  sends(end: string, commandKeys: readonly string[], atMs = 0, permanent = false): this {
    this.#memory.of(this.#ledgerId).sent([entry(end, commandKeys, permanent)], atMs);
    return this;
  }

  writes(end: string, commandKeys: readonly string[], atMs = 0, permanent = false): this {
    this.sends(end, commandKeys, atMs, permanent);
    this.#memory.of(this.#ledgerId).stood();
    this.#end = end;
    return this;
  }

  isNew(id: string, atMs = 1, permanent = false): boolean {
    return this.#memory.of(this.#ledgerId).isNew({ id, permanent }, this.#end, atMs);
  }
}

/** Of a ledger that began here. */
function begun(
  end: string,
  commandKeys: readonly string[],
  memory = new RecentKeysMemory(),
  ledgerId = 'ledger',
): Writer {
  return new Writer(memory, ledgerId).claims('').writes(end, commandKeys);
}

describe('a writer takes a command key for new', () => {
  test('of a ledger that began with it, unless it was sent, whatever its id', () => {
    expect(begun('a', ['k']).isNew('other')).toBe(true);
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.string().map(sha256Hex)), { maxLength: 50 }), (commandKeys) => {
        const writer = begun('a', commandKeys);
        for (const id of commandKeys) expect(writer.isNew(id)).toBe(false);
      }),
    );
  });

  test('nearly always where it is, and never where it is not, however many there are', () => {
    const writer = begun('a', []);
    const commandKeys = ids(200_000);
    for (let from = 0; from < commandKeys.length; from += 64)
      writer.writes(`a ${from}`, commandKeys.slice(from, from + 64));
    expect(commandKeys.filter((id) => writer.isNew(id))).toEqual([]);
    expect(ids(10_000, 'other').filter((id) => !writer.isNew(id)).length).toBeLessThan(100);
  });

  test('never a permanent one, and keeps none of those', () => {
    const writer = begun('a', []).writes('b', ['k'], 0, true);
    expect(writer.isNew('k', 1, true)).toBe(false);
    expect(writer.isNew('k')).toBe(true);
  });

  test('never before a claim', () => {
    expect(new Writer().isNew('k')).toBe(false);
  });

  test('of a ledger that was there before, once nobody else has written to it for longer than a command key counts', () => {
    const writer = new Writer().claims('a').writes('b', ['k'], hourMs);
    expect(writer.isNew('other', 25 * hourMs - 1)).toBe(false);
    expect(writer.isNew('other', 25 * hourMs)).toBe(true);
    expect(writer.isNew('k', 25 * hourMs)).toBe(false);
  });

  describe('after another claim', () => {
    test.for([
      ['with the same end', 'a', true],
      ['with the end that was sent', 'b', true],
      ['with another end: somebody else has written', 'c', false],
    ] as const)('%s', ([, end, isKnown]) => {
      const writer = begun('a', ['k']).sends('b', ['sent'], 1).claims(end, 2);
      expect(writer.isNew('other', 3)).toBe(isKnown);
      expect(writer.isNew('k', 3)).toBe(false);
      expect(writer.isNew('sent', 3)).toBe(false);
    });

    test.for([
      ['the end that was sent, and then the one before', ['b', 'a']],
      ['the one before, and then the end that was sent', ['a', 'b']],
    ] as const)('not with %s: that is another ledger', ([, [first, second]]) => {
      const writer = begun('a', []).sends('b', [], 1).claims(first, 2).claims(second, 3);
      expect(writer.isNew('other', 4)).toBe(false);
    });
  });

  test('never for a state that is not the end of what it wrote', () => {
    const memory = new RecentKeysMemory();
    begun('a', [], memory);
    const known = memory.of('ledger');
    expect(['', 'a', 'b'].map((end) => known.isNew({ id: 'k', permanent: false }, end, 1))).toEqual([
      false,
      true,
      false,
    ]);
  });
});

describe('filters', () => {
  test('are given back when the last of their command keys has counted for a day', () => {
    const memory = new RecentKeysMemory();
    const all = memory.bytesLeft - ledgerBytes;
    const held = () => (all - memory.bytesLeft) / filterBytes;
    const writer = begun('a', ['early'], memory);
    expect(held()).toBe(1);
    writer.writes('b', ['late'], 4 * hourMs);
    expect(held()).toBe(1);
    // A filter is filled for five hours.
    writer.writes('c', ['next'], 6 * hourMs);
    expect(held()).toBe(2);
    writer.writes('d', ['later'], 28 * hourMs);
    expect(held()).toBe(3);
    const commandKeys = ['early', 'late', 'next', 'later'];
    expect(commandKeys.filter((id) => writer.isNew(id, 28 * hourMs))).toEqual([]);
    writer.writes('e', ['last'], 34 * hourMs);
    expect(held()).toBe(2);
    expect([...commandKeys, 'last'].filter((id) => writer.isNew(id, 34 * hourMs))).toEqual(['early', 'late', 'next']);
  });

  test('grow where one is full, and are as large as the command keys of the one before else', () => {
    const memory = new RecentKeysMemory();
    const all = memory.bytesLeft - ledgerBytes;
    const writer = begun('a', ids(513), memory);
    expect(all - memory.bytesLeft).toBe((1 + 4) * filterBytes);
    writer.writes('b', ['later'], 6 * hourMs);
    expect(all - memory.bytesLeft).toBe((1 + 4 + 1) * filterBytes);
  });
});

describe('beyond what a node may hold', () => {
  const ledgers = (count: number) => count * (ledgerBytes + filterBytes);

  test('the ledger that was asked for longest ago is forgotten', () => {
    const memory = new RecentKeysMemory(ledgers(2));
    const first = begun('a', ['k'], memory, 'first');
    const second = begun('a', ['k'], memory, 'second');
    const forgotten = memory.of('second');
    expect(first.isNew('other')).toBe(true);
    const third = begun('a', ['k'], memory, 'third');
    expect(memory.bytesLeft).toBe(0);
    // What an actor still has of it tells nothing, and takes nothing.
    forgotten.sent([entry('b', ['later'])], 1);
    forgotten.stood();
    expect(forgotten.isNew({ id: 'other', permanent: false }, 'b', 30 * hourMs)).toBe(false);
    expect([first, third].map((writer) => writer.isNew('other'))).toEqual([true, true]);
    expect(memory.bytesLeft).toBe(0);
    expect(second.isNew('other')).toBe(false);
  });

  test('a ledger may have half of it; what needs more knows nothing and learns anew, and the others are left alone', () => {
    const memory = new RecentKeysMemory(ledgers(4));
    const other = begun('a', ['k'], memory, 'other');
    const writer = begun('a', ids(513), memory);
    expect(writer.isNew('other')).toBe(false);
    expect(other.isNew('other')).toBe(true);
    expect(memory.bytesLeft).toBe(ledgers(3) - ledgerBytes);
    writer.writes('b', ['later'], 2);
    expect(writer.isNew('other', 25 * hourMs)).toBe(false);
    expect(writer.isNew('other', 25 * hourMs + 2)).toBe(true);
    expect(writer.isNew('later', 25 * hourMs + 2)).toBe(false);
  });
});

/** What a writer may do; `kept`: whether the store keeps the batch, and says so. */
type Deed =
  | { readonly do: 'claim' | 'forget'; readonly writer: number }
  | { readonly do: 'write'; readonly writer: number; readonly id: number; readonly kept: 'yes' | 'no' | 'silently' }
  | { readonly do: 'wait'; readonly hours: number };

const writer = fc.constantFrom(0, 1);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ do: fc.constant('claim' as const), writer }),
  fc.record({ do: fc.constant('forget' as const), writer }),
  {
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      writer,
      id: fc.integer({ min: 0, max: 5 }),
      kept: fc.constantFrom('yes' as const, 'yes' as const, 'no' as const, 'silently' as const),
    }),
    weight: 6,
  },
  fc.record({ do: fc.constant('wait' as const), hours: fc.integer({ min: 1, max: 30 }) }),
);

test('of two writers of one log, whatever becomes of what they send, none takes a command key for new that stands and counts', () => {
  let taken = 0;
  const run = (deeds: readonly Deed[]) => {
    const log: { readonly hash: string; readonly id: string; readonly at: number }[] = [];
    const writers = [0, 1].map(() => ({ does: new Writer(), hasClaim: false }));
    let [now, made] = [0, 0];
    const end = () => log.at(-1)?.hash ?? '';
    for (const one of deeds) {
      if (one.do === 'wait') {
        now += one.hours * hourMs;
        continue;
      }
      const it = writers[one.writer];
      if (it === undefined) throw new Error('no writer');
      if (one.do === 'forget') it.does = new Writer();
      if (one.do !== 'write' || !it.hasClaim) {
        it.does.claims(end(), now);
        it.hasClaim = true;
        continue;
      }
      const id = `mark ${one.id}`;
      const stands = log.some((event) => event.id === id && now - event.at < 24 * hourMs);
      // On another end the store refuses what is decided.
      const isFenced = it.does.end !== end();
      if (!isFenced && it.does.isNew(id, now)) {
        taken += 1;
        expect(stands).toBe(false);
      }
      if (stands) continue;
      made += 1;
      const hash = `event ${made}`;
      if (isFenced || one.kept !== 'yes') it.does.sends(hash, [id], now);
      else it.does.writes(hash, [id], now);
      if (!isFenced && one.kept !== 'no') log.push({ hash, id, at: now });
      it.hasClaim = !isFenced && one.kept === 'yes';
    }
  };
  fc.assert(fc.property(fc.array(deed, { maxLength: 60 }), run), { numRuns: 2_000 });
  expect(taken).toBeGreaterThan(1_000);
});
