import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { passivateAfterMs } from '../../src/actors/bounds.ts';
import type { KnownMarks } from '../../src/actors/known-marks.ts';
import { MarksMemory } from '../../src/actors/marks-memory.ts';
import { sha256Hex } from '../../src/domain/hash.ts';
import type { LedgerEntry, MarkName } from '../../src/store/ledger-store.ts';
import { append, createMaster, mark, openLedger } from '../support/commands.ts';
import { faultyLedgerStore, type StoreFault, scriptedFaults } from '../support/store-faults.ts';
import { codeOf, type Rig, rig, storeWith } from '../support/world.ts';

const hourMs = 60 * 60_000;
const named = (id: string): MarkName => ({ id, permanent: false });

/** One entry whose hash is `hash`, with these marks. */
function entry(hash: string, ids: readonly string[], permanent = false): LedgerEntry {
  const projections = ids.map((id) => ({ kind: 'command', command: mark(id, 'asked', permanent) }) as const);
  return { seq: 0, prevHash: '', hash, row: '', projections };
}

/** What is known of a ledger that began here and ends in `hash`. */
function begun(hash: string, ids: readonly string[], memory = new MarksMemory(), ledgerId = 'ledger'): KnownMarks {
  const marks = memory.of(ledgerId);
  marks.claimed(null, 0);
  marks.sent([entry(hash, ids)], 0);
  marks.stand();
  return marks;
}

describe('marks that a writer knows', () => {
  test('of a ledger that began with it: one that was sent is not new, whatever its id', () => {
    expect(begun('a', ['k']).isNew(named('other'), 1)).toBe(true);
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.string().map(sha256Hex)), { maxLength: 50 }), (ids) => {
        const marks = begun('a', ids);
        for (const id of ids) expect(marks.isNew(named(id), 1)).toBe(false);
      }),
    );
  });

  test('nearly all that were not sent are known to be new, and none that was, however many', () => {
    const marks = begun('a', []);
    const ids = Array.from({ length: 200_000 }, (_, n) => sha256Hex(`mark ${n}`));
    for (let from = 0; from < ids.length; from += 64) marks.sent([entry('b', ids.slice(from, from + 64))], 0);
    expect(ids.filter((id) => marks.isNew(named(id), 1))).toEqual([]);
    const others = Array.from({ length: 10_000 }, (_, n) => sha256Hex(`other ${n}`));
    expect(others.filter((id) => !marks.isNew(named(id), 1)).length).toBeLessThan(100);
  });

  test('permanent ones are never known, and not kept', () => {
    const marks = begun('a', []);
    marks.sent([entry('b', ['k'], true)], 0);
    expect(marks.isNew({ id: 'k', permanent: true }, 1)).toBe(false);
    expect(marks.isNew(named('k'), 1)).toBe(true);
  });

  test('before a claim nothing is known', () => {
    expect(new MarksMemory().of('ledger').isNew(named('k'), 1)).toBe(false);
  });

  test('of a ledger that was there before: once it was written to for longer than a mark counts', () => {
    const marks = new MarksMemory().of('ledger');
    marks.claimed({ seq: 0, hash: 'a' }, 0);
    marks.sent([entry('b', ['k'])], hourMs);
    marks.stand();
    expect(marks.isNew(named('other'), 24 * hourMs)).toBe(false);
    expect(marks.isNew(named('other'), 25 * hourMs)).toBe(true);
    expect(marks.isNew(named('k'), 25 * hourMs)).toBe(false);
  });

  describe('claimed again', () => {
    test.for([
      ['with the same end', 'a', true],
      ['with the end that was sent', 'b', true],
      ['with another end: somebody else has written', 'c', false],
    ] as const)('%s', ([, hash, isKnown]) => {
      const marks = begun('a', ['k']);
      marks.sent([entry('b', ['sent'])], 1);
      marks.claimed({ seq: 0, hash }, 2);
      expect(marks.isNew(named('other'), 3)).toBe(isKnown);
      expect(marks.isNew(named('k'), 3)).toBe(false);
      expect(marks.isNew(named('sent'), 3)).toBe(false);
    });

    test('with the end that was sent, and then with the one before: that is another one', () => {
      const marks = begun('a', []);
      marks.sent([entry('b', [])], 1);
      marks.claimed({ seq: 0, hash: 'b' }, 2);
      marks.claimed({ seq: 0, hash: 'a' }, 3);
      expect(marks.isNew(named('other'), 4)).toBe(false);
    });

    test('an end that was sent and did not come to be is no end later', () => {
      const marks = begun('a', []);
      marks.sent([entry('b', [])], 1);
      marks.claimed({ seq: 0, hash: 'a' }, 2);
      marks.claimed({ seq: 0, hash: 'b' }, 3);
      expect(marks.isNew(named('other'), 4)).toBe(false);
    });
  });

  test('what is a day old is dropped, by when the last of it was added', () => {
    const memory = new MarksMemory();
    memory.of('ledger');
    const all = memory.bytesLeft;
    const marks = begun('a', ['early'], memory);
    const held = () => all - memory.bytesLeft;
    expect(held()).toBe(1_024);
    marks.sent([entry('b', ['late'])], 4 * hourMs);
    expect(held()).toBe(1_024);
    // A filter is filled for five hours.
    marks.sent([entry('c', ['next'])], 6 * hourMs);
    expect(held()).toBe(2_048);
    marks.sent([entry('d', ['later'])], 28 * hourMs);
    expect(held()).toBe(3_072);
    for (const id of ['early', 'late', 'next', 'later']) expect(marks.isNew(named(id), 28 * hourMs)).toBe(false);
    marks.sent([entry('e', ['last'])], 34 * hourMs);
    expect(held()).toBe(2_048);
    expect(['early', 'late', 'next', 'later', 'last'].filter((id) => marks.isNew(named(id), 34 * hourMs))).toEqual([
      'early',
      'late',
      'next',
    ]);
  });

  test('a filter that was full is followed by a larger one, and one that was not by one of its size', () => {
    const memory = new MarksMemory();
    memory.of('ledger');
    const all = memory.bytesLeft;
    const ids = (count: number) => Array.from({ length: count }, (_, n) => sha256Hex(`mark ${n}`));
    const marks = begun('a', ids(513), memory);
    expect(all - memory.bytesLeft).toBe(5 * 1_024);
    marks.sent([entry('b', ['later'])], 6 * hourMs);
    expect(all - memory.bytesLeft).toBe(6 * 1_024);
  });

  describe('beyond what the node may hold', () => {
    /** A ledger of few marks takes 512 bytes, and 1,024 for its filter. */
    const ledgers = (count: number) => count * (512 + 1_024);

    test('those of the ledger that was asked for longest ago are forgotten', () => {
      const memory = new MarksMemory(ledgers(2));
      const first = begun('a', ['k'], memory, 'first');
      const second = begun('a', ['k'], memory, 'second');
      memory.of('first');
      const third = begun('a', ['k'], memory, 'third');
      expect([first, second, third].map((marks) => marks.isNew(named('other'), 1))).toEqual([true, false, true]);
      expect(memory.bytesLeft).toBe(0);
      // What is left of it tells nothing later, and takes nothing.
      second.sent([entry('b', ['later'])], 1);
      second.stand();
      expect(second.isNew(named('other'), 1)).toBe(false);
      expect([first, third].map((marks) => marks.isNew(named('other'), 1))).toEqual([true, true]);
      expect(memory.bytesLeft).toBe(0);
    });

    test('a ledger may have half of it; what needs more knows nothing until it is claimed again, and the others are left alone', () => {
      const memory = new MarksMemory(ledgers(4));
      const other = begun('a', ['k'], memory, 'other');
      const many = Array.from({ length: 513 }, (_, n) => sha256Hex(`mark ${n}`));
      const marks = begun('a', many, memory);
      expect(marks.isNew(named('other'), 1)).toBe(false);
      expect(other.isNew(named('other'), 1)).toBe(true);
      expect(memory.bytesLeft).toBe(ledgers(3) - 512);
      marks.sent([entry('b', ['later'])], 1);
      marks.stand();
      expect(marks.isNew(named('other'), 30 * hourMs)).toBe(false);
      marks.claimed({ seq: 0, hash: 'b' }, 30 * hourMs);
      expect(marks.isNew(named('other'), 54 * hourMs)).toBe(false);
      expect(marks.isNew(named('other'), 55 * hourMs)).toBe(true);
    });
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

test('of two writers of one log, whatever becomes of what they send, none takes a mark for new that stands and counts', () => {
  let newOnes = 0;
  const run = (deeds: readonly Deed[]) => {
    const log: { readonly hash: string; readonly id: string; readonly at: number }[] = [];
    const writers = [0, 1].map(() => ({ memory: new MarksMemory(), end: null as string | null }));
    let [now, made] = [0, 0];
    const end = () => log.at(-1)?.hash ?? '';
    for (const one of deeds) {
      if (one.do === 'wait') {
        now += one.hours * hourMs;
        continue;
      }
      const it = writers[one.writer];
      if (it === undefined) throw new Error('no writer');
      if (one.do === 'forget') it.memory = new MarksMemory();
      if (one.do !== 'write' || it.end === null) {
        it.end = end();
        it.memory.of('ledger').claimed(it.end === '' ? null : { seq: log.length - 1, hash: it.end }, now);
        continue;
      }
      const id = `mark ${one.id}`;
      const isNew = it.memory.of('ledger').isNew(named(id), now);
      const stands = log.some((event) => event.id === id && now - event.at < 24 * hourMs);
      if (it.end === end() && isNew) {
        newOnes += 1;
        expect(stands).toBe(false);
      }
      if (stands) continue;
      made += 1;
      const hash = `event ${made}`;
      it.memory.of('ledger').sent([entry(hash, [id])], now);
      const isFenced = it.end !== end();
      if (!isFenced && one.kept !== 'no') log.push({ hash, id, at: now });
      if (isFenced || one.kept !== 'yes') {
        it.end = null;
        continue;
      }
      it.end = hash;
      it.memory.of('ledger').stand();
    }
  };
  fc.assert(fc.property(fc.array(deed, { maxLength: 60 }), run), { numRuns: 2_000 });
  expect(newOnes).toBeGreaterThan(1_000);
});

describe('an actor looks for marks in the store', () => {
  /** A world that counts the marks looked for. */
  function counted(): Rig & { readonly lookedFor: string[] } {
    const lookedFor: string[] = [];
    const world = rig({
      wrap: (memory) =>
        storeWith(memory, {
          findCommands: (ledgerId, marks) => {
            lookedFor.push(...marks.map(({ id }) => id));
            return memory.findCommands(ledgerId, marks);
          },
        }),
    });
    return { ...world, lookedFor };
  }

  test('not for those of a ledger that it began, until one is sent again', async () => {
    const { newActor, lookedFor } = counted();
    const actor = newActor();
    await actor.submit(openLedger());
    await actor.submit(createMaster());
    await actor.submit(append({ marks: [mark('one')] }));
    await actor.submit(append({ marks: [mark('two')] }));
    expect(lookedFor).toEqual([]);
    expect((await actor.submit(append({ marks: [mark('one')] }))).replayed).toBe(true);
    expect(lookedFor).toEqual(['one']);
  });

  test('nor after it has left memory and come back, as long as nobody else has written', async () => {
    const { directory, clock, lookedFor } = counted();
    const node = directory();
    for (const command of [openLedger(), createMaster(), append({ marks: [mark('one')] })]) await node.submit(command);
    await clock.advance(2 * passivateAfterMs);
    expect(node.load().ledgers).toBe(0);
    expect((await node.submit(append({ marks: [mark('two')] }))).replayed).toBe(false);
    expect(lookedFor).toEqual([]);
    expect((await node.submit(append({ marks: [mark('one')] }))).replayed).toBe(true);
    expect(lookedFor).toEqual(['one']);
  });

  test('for those of a ledger that was there when it came, whatever its clock is set to', async () => {
    const { newActor, clock, lookedFor } = counted();
    await newActor().submit(openLedger());
    const actor = newActor();
    await actor.submit(createMaster());
    await actor.submit(append({ marks: [mark('before')] }));
    clock.jump(26 * hourMs);
    await actor.submit(append({ marks: [mark('after')] }));
    expect(lookedFor).toEqual(['before', 'after']);
  });

  test.for<StoreFault>(['applied', 'lost', 'late', 'late-before-claim'])(
    'and knows them behind an append that is %s, also in a new actor of the node',
    async (fault) => {
      const faults = scriptedFaults();
      const world = rig({ wrap: (memory) => faultyLedgerStore(memory, faults.choose) });
      const node = world.directory();
      for (const command of [openLedger(), createMaster(), append({ marks: [mark('one')] })])
        await node.submit(command);
      faults.fail('append', fault);
      const first = await codeOf(node.submit(append({ marks: [mark('two')] })));
      await world.clock.advance(2 * passivateAfterMs);
      expect(node.load().ledgers).toBe(0);
      const again = await node.submit(append({ marks: [mark('two')] }));
      expect(again.replayed).toBe(first === 'carried out');
      expect((await node.submit(append({ marks: [mark('one')] }))).replayed).toBe(true);
      expect((await world.log()).filter(({ eventType }) => eventType === 'SHIPMENT_DISPATCHED')).toHaveLength(2);
    },
  );

  test('for those of a ledger that another one began, and of one that another one wrote to meanwhile', async () => {
    const { newActor, lookedFor, meter } = counted();
    const [first, second] = [newActor(), newActor()];
    await first.submit(openLedger());
    await first.submit(createMaster());
    await second.submit(append({ marks: [mark('of the second')] }));
    expect(lookedFor).toEqual(['of the second']);
    // It takes it for new, is fenced, and looks.
    expect(meter.fencings).toBe(0);
    expect((await first.submit(append({ marks: [mark('of the second')] }))).replayed).toBe(true);
    expect(meter.fencings).toBe(1);
    expect(await codeOf(first.submit(append({ marks: [mark('of the second', 'other')] })))).toBe(
      'idempotency_key_reused',
    );
  });
});
