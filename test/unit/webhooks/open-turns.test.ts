import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OpenTurns } from '../../../src/webhooks/send/open-turns.ts';

const anyone = () => true;

/** The same as it is said, with all that waits looked at each time. */
class PlainTurns {
  readonly #ofOneOwner: 'oldest' | 'newest';
  #waiting: (readonly [owner: string, ones: readonly string[]])[] = [];
  readonly #open = new Set<string>();

  constructor(ofOneOwner: 'oldest' | 'newest') {
    this.#ofOneOwner = ofOneOwner;
  }

  add(owner: string, one: string): void {
    const known = this.#waiting.some(([name]) => name === owner);
    if (!known) this.#waiting.push([owner, []]);
    this.#waiting = this.#waiting.map(([name, ones]) => [
      name,
      name !== owner || ones.includes(one) ? ones : [...ones, one],
    ]);
  }

  delete(owner: string, one: string): void {
    this.#waiting = this.#waiting
      .map(([name, ones]) => [name, name === owner ? ones.filter((other) => other !== one) : ones] as const)
      .filter(([, ones]) => ones.length > 0);
  }

  setOpen(one: string, isOpen: boolean): void {
    if (isOpen) this.#open.add(one);
    else this.#open.delete(one);
  }

  next(may: (owner: string) => boolean) {
    for (const [owner, ones] of this.#waiting.filter(([name]) => may(name))) {
      const open = ones.filter((one) => this.#open.has(one));
      const one = this.#ofOneOwner === 'oldest' ? open[0] : open.at(-1);
      if (one !== undefined) return { owner, one };
    }
    return undefined;
  }

  took(owner: string, one: string): void {
    this.delete(owner, one);
    this.#waiting = [
      ...this.#waiting.filter(([name]) => name !== owner),
      ...this.#waiting.filter(([name]) => name === owner),
    ];
  }
}

test.each(['oldest', 'newest'] as const)(
  'the turns are those that all would have had who are looked at each time, the %s of one owner first',
  (ofOneOwner) => {
    const owner = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const one = fc.constantFrom('p', 'q', 'r', 's');
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('add' as const), owner, one }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), owner, one }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('open' as const, 'close' as const), one }) },
      {
        weight: 3,
        arbitrary: fc.record({ kind: fc.constantFrom('next' as const, 'take' as const), not: fc.subarray(['a', 'b']) }),
      },
    );
    const run = fc.property(fc.array(step, { minLength: 50, maxLength: 100 }), (steps) => {
      const turns = new OpenTurns<string>(ofOneOwner);
      const plain = new PlainTurns(ofOneOwner);
      for (const did of steps) {
        for (const each of [turns, plain]) {
          if (did.kind === 'add') each.add(did.owner, did.one);
          if (did.kind === 'delete') each.delete(did.owner, did.one);
          if (did.kind === 'open' || did.kind === 'close') each.setOpen(did.one, did.kind === 'open');
        }
        if (did.kind !== 'next' && did.kind !== 'take') continue;
        const may = (name: string) => !did.not.some((other) => other === name);
        const next = turns.next(may);
        expect(next).toEqual(plain.next(may));
        if (next === undefined || did.kind === 'next') continue;
        turns.took(next.owner, next.one);
        plain.took(next.owner, next.one);
      }
    });
    fc.assert(run, { numRuns: 2_000 });
  },
);

describe('what cannot be had costs nothing', () => {
  const waiters = 10_000;

  /** How many owners were looked at for so many turns of one for whom there is something. */
  function lookedAt(turns: OpenTurns<string>, times: number): number {
    let looks = 0;
    for (let time = 0; time < times; time++) {
      turns.add('mine', 'open');
      const next = turns.next(() => {
        looks += 1;
        return true;
      });
      expect(next).toEqual({ owner: 'mine', one: 'open' });
      turns.took('mine', 'open');
    }
    return looks;
  }

  test('owners who wait for what is closed are looked at once, whatever else is picked', () => {
    const turns = new OpenTurns<string>('oldest');
    for (let at = 0; at < waiters; at++) for (const one of ['p', 'q']) turns.add(`owner-${at}`, one);
    turns.setOpen('open', true);
    expect(lookedAt(turns, 1)).toBe(waiters + 1);
    expect(lookedAt(turns, 100)).toBe(100);
  });

  test('when it opens the first of them has its turn, and the others are not looked at for that', () => {
    const turns = new OpenTurns<string>('newest');
    for (let at = 0; at < waiters; at++) turns.add(`owner-${at}`, 'p');
    turns.setOpen('open', true);
    lookedAt(turns, 1);
    for (let at = 0; at < 10; at++) {
      let looks = 0;
      turns.setOpen('p', true);
      const next = turns.next(() => {
        looks += 1;
        return true;
      });
      expect([next, looks]).toEqual([{ owner: `owner-${at}`, one: 'p' }, 1]);
      turns.took(`owner-${at}`, 'p');
      turns.setOpen('p', false);
      expect(lookedAt(turns, 10)).toBe(10);
    }
  });

  test('one who waits for something new keeps its turn', () => {
    const turns = new OpenTurns<string>('oldest');
    for (const owner of ['a', 'b', 'c']) turns.add(owner, owner === 'b' ? 'closed' : 'open');
    turns.setOpen('open', true);
    const order: string[] = [];
    const take = () => {
      const next = turns.next(anyone);
      order.push(next?.owner ?? 'nobody');
      if (next !== undefined) turns.took(next.owner, next.one);
    };
    take();
    take();
    turns.add('a', 'open');
    turns.add('b', 'open');
    for (let turn = 0; turn < 3; turn++) take();
    expect(order).toEqual(['a', 'c', 'b', 'a', 'nobody']);
  });
});
