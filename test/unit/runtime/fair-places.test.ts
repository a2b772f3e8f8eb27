import { expect, test } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import { FairPlaces, type PlaceBounds } from '../../../src/runtime/limits/fair-places.ts';

const overloaded = () => new LedgerError('overloaded', 'too many wait');
const ended = () => new LedgerError('unavailable', 'gone');
const going = new AbortController().signal;

/** Places, and what became of each request: its name once it has a place, `name: code` once it is refused. */
function placesWith(bounds: Partial<PlaceBounds>) {
  const places = new FairPlaces({ perCaller: 2, total: 3, waiting: 100, ...bounds }, overloaded);
  const told: string[] = [];
  const take = (caller: string, name: string, signal = going): void => {
    const tell = (error: unknown) => void told.push(`${name}: ${(error as LedgerError).code}`);
    try {
      const waits = places.take(caller, signal, ended);
      if (waits === null) told.push(name);
      else waits.then(() => void told.push(name), tell);
    } catch (error) {
      tell(error);
    }
  };
  const since = async (): Promise<string[]> => {
    await new Promise((resolve) => void setImmediate(resolve));
    return told.splice(0);
  };
  return { places, take, since };
}

test('the places of a caller and of the node are bounded', async () => {
  const { places, take, since } = placesWith({});
  for (const at of [1, 2, 3, 4]) take('a', `a${at}`);
  for (const at of [1, 2]) take('b', `b${at}`);
  expect(await since()).toEqual(['a1', 'a2', 'b1']);
  expect([places.held, places.waiting]).toEqual([3, 3]);
});

test('waiting callers get places in turn, however many requests each has', async () => {
  const { places, take, since } = placesWith({ perCaller: 1, total: 1 });
  for (let at = 0; at < 50; at++) take('many', `many${at}`);
  take('few', 'few0');
  take('few', 'few1');
  take('one', 'one0');
  expect(await since()).toEqual(['many0']);
  const order: string[] = [];
  for (const caller of ['many', 'many', 'few', 'one', 'many', 'few']) {
    places.leave(caller);
    order.push(...(await since()));
  }
  expect(order).toEqual(['many1', 'few0', 'one0', 'many2', 'few1', 'many3']);
});

test('a waiting request ends with its signal and takes no place afterwards', async () => {
  const { places, take, since } = placesWith({ perCaller: 1, total: 1 });
  const gone = new AbortController();
  take('a', 'a0');
  take('b', 'b0', gone.signal);
  take('c', 'c0');
  gone.abort();
  take('d', 'd0', gone.signal);
  expect(await since()).toEqual(['a0', 'd0: unavailable', 'b0: unavailable']);
  places.leave('a');
  expect(await since()).toEqual(['c0']);
  places.leave('c');
  expect([places.held, places.waiting]).toEqual([0, 0]);
});

test('the caller with most waiting requests is refused if too many wait', async () => {
  const { places, take, since } = placesWith({ perCaller: 1, total: 1, waiting: 3 });
  for (let at = 0; at < 5; at++) take('many', `many${at}`);
  expect(await since()).toEqual(['many0', 'many4: overloaded']);
  take('few', 'few0');
  expect(await since()).toEqual(['many3: overloaded']);
  take('other', 'other0');
  take('few', 'few1');
  expect(await since()).toEqual(['few1: overloaded', 'many2: overloaded']);
  expect(places.waiting).toBe(3);
});

test('among a thousand callers who ask again at once, a new one has its place before any of them has its second', async () => {
  const { places, take, since } = placesWith({ perCaller: 4, total: 4, waiting: 1_001 });
  const running: string[] = [];
  const begun = async (): Promise<string[]> => {
    const names = await since();
    running.push(...names);
    return names;
  };
  for (let at = 0; at < 1_004; at++) take(`many${at}`, `many${at}`);
  take('new', 'new');
  expect(await begun()).toHaveLength(4);
  const left: string[] = [];
  while (!running.includes('new')) {
    const caller = running.shift() ?? '';
    left.push(caller);
    places.leave(caller);
    take(caller, caller);
    await begun();
  }
  expect(new Set(left).size).toBe(left.length);
  expect(left).toHaveLength(1_001);
});

test('where a thousand callers wait with one request each, a new one is refused at once, and nobody else', async () => {
  const { places, take, since } = placesWith({ total: 4, waiting: 1_000 });
  for (let at = 0; at < 1_004; at++) take(`many${at}`, `many${at}`);
  await since();
  take('new', 'new');
  expect(await since()).toEqual(['new: overloaded']);
  places.leave('many0');
  take('new', 'new again');
  expect(await since()).toEqual(['many4']);
  expect(places.waiting).toBe(1_000);
});
