import { expect, test } from 'vitest';
import { LedgerRotation } from '../../../src/webhooks/tail/ledger-rotation.ts';
import { delegate, openingFacts, openLedger, stranger, supplier, uuid } from '../../support/commands.ts';
import { webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls } from '../../support/world.ts';

/** A rotation of ledgers whose owners begin their names; `12b` is watched by the owners 1 and 2. */
function rotationOf(...waiting: string[]) {
  const rotation = new LedgerRotation({ ledgersAtOnce: 4, ofOneOwner: 3 });
  const add = (ledger: string) => rotation.add(ledger, [...ledger.slice(0, -1)]);
  for (const ledger of waiting) add(ledger);
  /** Begins all that may begin. */
  const begin = (): string[] => {
    const begun: string[] = [];
    for (let next = rotation.begin(); next !== null; next = rotation.begin()) begun.push(next);
    return begun;
  };
  /** Each ledger that has begun ends at once. */
  const all = (): string => {
    const begun: string[] = [];
    for (let next = rotation.begin(); next !== null; next = rotation.begin()) {
      begun.push(next);
      rotation.end(next);
    }
    return begun.join(' ');
  };
  return { rotation, add, begin, all };
}

test('owners are served in rotation, however many ledgers each has', () => {
  expect(rotationOf('1a', '1b', '1c', '1d', '2a', '2b', '3a').all()).toBe('1a 2a 3a 1b 2b 1c 1d');
});

test('a ledger of several owners comes once, for the one with the fewest', () => {
  expect(rotationOf('1a', '1b', '1c', '12d', '2e', '3f').all()).toBe('1a 12d 3f 1b 2e 1c');
  expect(rotationOf('1a', '2b', '12c', '12d', '123e').all()).toBe('1a 2b 123e 12c 12d');
});

test('of very many owners those are looked at that have ledgers already, and one more', () => {
  const rotation = new LedgerRotation({ ledgersAtOnce: 4, ofOneOwner: 3 });
  let looks = 0;
  function* owners() {
    for (let at = 0; at < 100_000; at++) {
      looks += 1;
      yield `owner-${at}`;
    }
  }
  for (let at = 0; at < 100; at++) rotation.add(`ledger-${at}`, owners());
  for (let at = 0; at < 100; at++) rotation.add(`ledger-${at}`, owners());
  expect(looks).toBe((100 * 101) / 2);
});

test('a ledger that nobody watches is served too', () => {
  expect(rotationOf('1a', '1b', 'c', '2d').all()).toBe('1a c 2d 1b');
});

test('a ledger that nobody watched counts for its first watcher once it has one', () => {
  const { rotation, add, all } = rotationOf('a', 'b', '1c', 'd', 'e');
  add('b');
  rotation.add('e', ['2']);
  add('e');
  expect(all()).toBe('a 1c e b d');
});

test('a ledger of several owners waits for one that may begin one more, if there is one', () => {
  const { add, begin, all } = rotationOf('1a', '1b', '1c');
  expect(begin()).toEqual(['1a', '1b', '1c']);
  for (const ledger of ['2d', '2e', '2f', '2g', '12h', '21i']) add(ledger);
  expect(all()).toBe('2d 2e 2f 2g 12h 21i');
});

test('of owners that all have their places a ledger waits for the one with the fewest', () => {
  const rotation = new LedgerRotation({ ledgersAtOnce: 4, ofOneOwner: 2 });
  for (const ledger of ['1a', '1b', '2a', '2b', '1c']) rotation.add(ledger, [ledger.slice(0, 1)]);
  for (let at = 0; at < 4; at += 1) rotation.begin();
  rotation.add('12d', ['1', '2']);
  rotation.end('2a');
  expect(rotation.begin()).toBe('12d');
});

test('one owner has all places but one', () => {
  const { rotation, add, begin } = rotationOf('1a', '1b', '1c', '1d', '1e');
  expect(begin()).toEqual(['1a', '1b', '1c']);
  for (const ledger of ['12f', '2g']) add(ledger);
  expect(begin()).toEqual(['12f']);
  rotation.end('1b');
  expect(begin()).toEqual(['1d']);
  rotation.end('12f');
  expect(begin()).toEqual(['2g']);
  expect(rotation.running).toBe(4);
});

test('a ledger that runs waits for its end, and one that was deleted does not begin', () => {
  const { rotation, add, begin } = rotationOf('1a', '12b', '2c');
  rotation.delete('12b');
  expect(begin()).toEqual(['1a', '2c']);
  add('1a');
  expect([begin(), rotation.has('1a')]).toEqual([[], true]);
  rotation.end('1a');
  expect(begin()).toEqual(['1a']);
  for (const ledger of ['1a', '2c']) rotation.end(ledger);
  expect([begin(), rotation.running, rotation.has('1a')]).toEqual([[], 0, false]);
});

test('ledgers of one owner, however long they take, leave a place to another owner', async () => {
  const many = Array.from({ length: 20 }, (_, at) => uuid(0x100 + at));
  const held = Promise.withResolvers<void>();
  const world = webhookRig({
    wrapLedgers: (inner) => beforeCalls(inner, { read: async (id) => (many.includes(id) ? held.promise : undefined) }),
  });
  const other = 'https://other.example/';
  await world.subscribe(supplier);
  await world.subscribe(stranger, { url: other });
  await world.quiet();
  for (const ledgerId of many) await world.run(openLedger({ ledgerId }));
  const facts = openingFacts('ORDER', { buyerActorId: delegate, supplierActorId: stranger });
  await world.runToEnd(openLedger({ ledgerId: uuid(0x1ff), facts, actorId: stranger }));
  expect(new Set(world.posts.map(({ url }) => url))).toEqual(new Set([other]));
  held.resolve();
  await world.quiet();
  expect(new Set(world.posts.map(({ event }) => event.ledger_id))).toEqual(new Set([...many, uuid(0x1ff)]));
});
