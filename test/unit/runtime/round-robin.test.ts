import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RoundRobin } from '../../../src/runtime/collections/round-robin.ts';
import { isNightly } from '../../support/nightly.ts';

type First = 'oldest' | 'newest';

const anyOwner = () => true;

/** A round-robin whose items are open while they are in the set. */
function roundRobin(first: First, ...open: string[]) {
  const isOpen = new Set(open);
  return { queue: new RoundRobin<string>({ isOpen: (item) => isOpen.has(item), first }), open: isOpen };
}

/** The same by its definition: every owner is examined each time. */
class PlainRoundRobin {
  readonly #first: First;
  readonly #open: ReadonlySet<string>;
  #waiting: (readonly [owner: string, items: readonly string[]])[] = [];

  constructor(first: First, open: ReadonlySet<string>) {
    this.#first = first;
    this.#open = open;
  }

  add(owner: string, item: string): void {
    if (!this.#waiting.some(([name]) => name === owner)) this.#waiting.push([owner, []]);
    this.#waiting = this.#waiting.map(([name, items]) => [
      name,
      name !== owner || items.includes(item) ? items : [...items, item],
    ]);
  }

  delete(owner: string, item: string): void {
    this.#waiting = this.#waiting
      .map(([name, items]) => [name, name === owner ? items.filter((other) => other !== item) : items] as const)
      .filter(([, items]) => items.length > 0);
  }

  next(may: (owner: string) => boolean) {
    for (const [owner, items] of this.#waiting.filter(([name]) => may(name))) {
      const open = items.filter((item) => this.#open.has(item));
      const item = this.#first === 'oldest' ? open[0] : open.at(-1);
      if (item !== undefined) return { owner, item };
    }
    return null;
  }

  served(owner: string, item: string): void {
    this.delete(owner, item);
    this.#waiting = [
      ...this.#waiting.filter(([name]) => name !== owner),
      ...this.#waiting.filter(([name]) => name === owner),
    ];
  }
}

test.each(['oldest', 'newest'] as const)(
  'serves the same owners as if all were examined each time, the %s item of an owner first',
  (first) => {
    const owner = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const item = fc.constantFrom('p', 'q', 'r', 's');
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('add' as const), owner, item }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), owner, item }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('open' as const, 'close' as const), item }) },
      {
        weight: 3,
        arbitrary: fc.record({
          kind: fc.constantFrom('next' as const, 'serve' as const),
          not: fc.subarray(['a', 'b']),
        }),
      },
    );
    const run = fc.property(fc.array(step, { minLength: 50, maxLength: 100 }), (steps) => {
      const { queue, open } = roundRobin(first);
      const plain = new PlainRoundRobin(first, open);
      for (const did of steps) {
        if (did.kind === 'open') open.add(did.item);
        if (did.kind === 'close') open.delete(did.item);
        for (const each of [queue, plain]) {
          if (did.kind === 'add') each.add(did.owner, did.item);
          if (did.kind === 'delete') each.delete(did.owner, did.item);
        }
        if (did.kind !== 'next' && did.kind !== 'serve') continue;
        const may = (name: string) => !did.not.some((other) => other === name);
        const next = queue.next(may);
        expect(next).toEqual(plain.next(may));
        if (next === null || did.kind === 'next') continue;
        queue.served(next.owner, next.item);
        plain.served(next.owner, next.item);
      }
    });
    fc.assert(run, { numRuns: isNightly ? 2_000 : 400 });
  },
);

describe('closed items cost nothing', () => {
  const waiters = 10_000;

  /** How many owners were examined while one owner with an open item was served so many times. */
  function examined(queue: RoundRobin<string>, times: number): number {
    let count = 0;
    for (let time = 0; time < times; time++) {
      queue.add('served', 'open');
      const next = queue.next(() => {
        count += 1;
        return true;
      });
      expect(next).toEqual({ owner: 'served', item: 'open' });
      queue.served('served', 'open');
    }
    return count;
  }

  test('owners that wait for closed items are examined once, however often others are served', () => {
    const { queue } = roundRobin('oldest', 'open');
    for (let at = 0; at < waiters; at++) for (const item of ['p', 'q']) queue.add(`owner-${at}`, item);
    expect(examined(queue, 1)).toBe(waiters + 1);
    expect(examined(queue, 100)).toBe(100);
  });

  test('when an item opens, its first owner is served, and the others are not examined', () => {
    const { queue, open } = roundRobin('newest', 'open');
    for (let at = 0; at < waiters; at++) queue.add(`owner-${at}`, 'p');
    examined(queue, 1);
    for (let at = 0; at < 10; at++) {
      let count = 0;
      open.add('p');
      const next = queue.next(() => {
        count += 1;
        return true;
      });
      expect([next, count]).toEqual([{ owner: `owner-${at}`, item: 'p' }, 1]);
      queue.served(`owner-${at}`, 'p');
      open.delete('p');
      expect(examined(queue, 10)).toBe(10);
    }
  });

  test('an owner that waits for a further item keeps its place', () => {
    const { queue } = roundRobin('oldest', 'open');
    for (const owner of ['a', 'b', 'c']) queue.add(owner, owner === 'b' ? 'closed' : 'open');
    const order: string[] = [];
    const serve = () => {
      const next = queue.next(anyOwner);
      order.push(next?.owner ?? 'none');
      if (next !== null) queue.served(next.owner, next.item);
    };
    serve();
    serve();
    queue.add('a', 'open');
    queue.add('b', 'open');
    for (let time = 0; time < 3; time++) serve();
    expect(order).toEqual(['a', 'c', 'b', 'a', 'none']);
  });
});
