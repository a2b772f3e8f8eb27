import { describe, expect, test } from 'vitest';
import type { LedgerError } from '../../../../src/domain/errors.ts';
import { type FollowerSlot, FollowerSlots } from '../../../../src/service/following/follower-slots.ts';
import { SeededRandom } from '../../../simulation/random.ts';
import { buyer, delegate, grant, supplier } from '../../../support/commands.ts';
import { FollowersRig, type RigStream } from '../../../support/followers-rig.ts';
import { beforeCalls, countingBytes } from '../../../support/world.ts';

/** Slots whose streams leave when they are ended, as those of a node do. */
function slotsOf(total: number, perActor: number) {
  const refused: string[] = [];
  const ended: string[] = [];
  const bounds = { total, perActor };
  const slots = new FollowerSlots({
    bounds,
    random: countingBytes(),
    meter: { refused: (bound) => void refused.push(bound) },
  });
  /** Takes a slot for the stream with this name, which begins with its actor. Returns the error of a refusal. */
  const take = (name: string, from = '192.0.2.1'): LedgerError | FollowerSlot => {
    const call = { address: from, endWith: () => void ended.push(name) };
    try {
      const slot = slots.take(name.slice(0, 1), call);
      // As of a connection that has ended.
      call.address = 'unknown';
      slot.follower = {
        end: () => {
          ended.push(name);
          slots.leave(slot);
        },
      };
      return slot;
    } catch (error) {
      return error as LedgerError;
    }
  };
  return { slots, take, refused, ended };
}

/** Names of one character. */
const actors = (count: number, first = 0x4e00) =>
  Array.from({ length: count }, (_, at) => String.fromCodePoint(first + at));

const overloaded = (bound: string) => ({
  code: 'overloaded',
  details: { bound, retry_after_ms: expect.any(Number) },
});

describe('when no slot is free', () => {
  test('an actor with fewer streams gets the slot of the newest stream of the actor with the most', () => {
    const { slots, take, ended, refused } = slotsOf(6, 4);
    for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'a4']) take(name);
    for (const name of ['c1', 'c2']) expect(take(name)).toMatchObject({ actorId: 'c' });
    expect([ended, refused, slots.count]).toEqual([['a4', 'a3'], [], 6]);
  });

  test('actors with equally many are refused, and end no stream of each other', () => {
    const { slots, take, ended, refused } = slotsOf(6, 4);
    for (const name of ['a1', 'a2', 'b1', 'b2', 'c1', 'c2']) take(name);
    for (const name of ['a3', 'b3', 'c3']) expect(take(name)).toMatchObject(overloaded('FOLLOWERS_MAX'));
    const bounds = new Array<string>(3).fill('FOLLOWERS_MAX');
    expect([ended, refused, slots.count]).toEqual([[], bounds, 6]);
  });

  test('an actor with one stream less is refused: it would have as many as the other one had', () => {
    const { take, ended } = slotsOf(3, 3);
    for (const name of ['a1', 'a2', 'b1']) take(name);
    expect([take('b2'), ended]).toMatchObject([overloaded('FOLLOWERS_MAX'), []]);
  });

  test('a hundred actors with a hundred streams each do not keep another one out', () => {
    const { slots, take, ended, refused } = slotsOf(10_000, 100);
    const many = actors(100);
    for (const actor of many) for (let stream = 0; stream < 100; stream += 1) take(`${actor}${stream}`);
    for (let stream = 0; stream < 20; stream += 1) expect(take(`h${stream}`)).toMatchObject({ actorId: 'h' });
    for (const actor of many) take(`${actor}100`);
    expect(ended).toHaveLength(20);
    expect(ended.filter((name) => name.startsWith('h'))).toEqual([]);
    expect([refused.length, slots.count]).toEqual([100, 10_000]);
  });
});

describe('when actors with one stream each have all slots', () => {
  test('an actor of another address gets the slot of the newest stream of the address with the most', () => {
    const { slots, take, ended, refused } = slotsOf(1_000, 100);
    for (const actor of actors(1_000)) take(`${actor}1`);
    expect(take('h1', '192.0.2.2')).toMatchObject({ actorId: 'h' });
    for (const name of ['h2', 'h3']) expect(take(name, '192.0.2.2')).toMatchObject(overloaded('FOLLOWERS_MAX'));
    expect(take('i1', '192.0.2.3')).toMatchObject({ actorId: 'i' });
    const newest = actors(1_000)
      .slice(-2)
      .map((actor) => `${actor}1`);
    expect(ended).toEqual(newest.toReversed());
    expect([refused.length, slots.count]).toEqual([2, 1_000]);
  });

  test('other actors of that address end no stream of an actor that has one', () => {
    const { take, ended } = slotsOf(1_000, 100);
    const [many, others] = [actors(1_000), actors(250, 0x6000)];
    for (const actor of many) take(`${actor}1`);
    for (let round = 0; round < 50; round += 1) {
      for (let stream = 0; stream < 3; stream += 1) take('h1', '192.0.2.2');
      for (const actor of others.slice(5 * round, 5 * round + 5)) take(`${actor}1`);
    }
    expect(ended).toEqual([`${many.at(-1)}1`]);
  });

  test('another actor of that address is refused, and addresses with equally many do not end each other’s', () => {
    const { slots, take, ended, refused } = slotsOf(4, 4);
    for (const actor of ['a', 'b']) take(`${actor}1`, '192.0.2.1');
    for (const actor of ['c', 'd']) take(`${actor}1`, '192.0.2.2');
    for (const address of ['192.0.2.1', '192.0.2.2'])
      expect(take('e1', address)).toMatchObject(overloaded('FOLLOWERS_MAX'));
    expect([ended, refused.length, slots.count]).toEqual([[], 2, 4]);
    expect(take('e1', '192.0.2.3')).toMatchObject({ actorId: 'e' });
    expect([take('f1', '192.0.2.3'), ended]).toMatchObject([overloaded('FOLLOWERS_MAX'), ['b1']]);
  });

  test('a slot that was left counts for its address no longer, though that is not known any more', () => {
    const { slots, take, ended } = slotsOf(3, 3);
    const taken = ['a', 'b', 'c'].map((actor) => take(`${actor}1`)) as FollowerSlot[];
    for (const slot of taken) slots.leave(slot);
    for (const actor of ['d', 'e', 'f']) take(`${actor}1`, '192.0.2.2');
    expect(take('g1', '192.0.2.1')).toMatchObject({ actorId: 'g' });
    expect(ended).toEqual(['f1']);
  });
});

describe('when an address has the most streams', () => {
  test('actors with many streams each at other addresses end none of its single streams', () => {
    const { take, ended } = slotsOf(10_000, 100);
    const shared = '198.51.100.1';
    const [single, greedy] = [actors(3_000), actors(100, 0x6000)];
    const ask = (times: number) => {
      for (let stream = 0; stream < times; stream += 1)
        for (const [at, actor] of greedy.entries()) take(`${actor}${stream}`, `192.0.2.${at}`);
    };
    for (const actor of single) take(`${actor}1`, shared);
    ask(70);
    expect(ended).toEqual([]);
    ask(30);
    expect(ended).toEqual([]);
    for (const actor of actors(200, 0x7000)) {
      expect(take(`${actor}1`, shared)).toMatchObject({ actorId: actor });
      ask(1);
    }
    expect([ended.length, ended.filter((name) => !greedy.includes(name.slice(0, 1)))]).toEqual([200, []]);
  });

  test('an actor with one stream gets a slot of an actor with two there, though the newest is of another', () => {
    const { take, ended } = slotsOf(5, 4);
    for (const name of ['a1', 'a2', 'b1', 'c1']) take(name);
    take('h1', '192.0.2.2');
    expect([take('h2', '192.0.2.2'), ended]).toMatchObject([{ actorId: 'h' }, ['a2']]);
    expect([take('a3'), take('h3', '192.0.2.2'), ended]).toMatchObject([
      overloaded('FOLLOWERS_MAX'),
      overloaded('FOLLOWERS_MAX'),
      ['a2'],
    ]);
  });

  test('two actors that come again whenever they lose a stream do not end the streams of each other in turn', () => {
    const { take, ended } = slotsOf(4, 4);
    for (const name of ['p1', 'p2']) take(name, '192.0.2.1');
    for (const name of ['q1', 'r1']) take(name, '192.0.2.2');
    for (let turn = 0; turn < 10; turn += 1) {
      take('s1', '192.0.2.2');
      take('p2', '192.0.2.1');
    }
    expect(ended).toEqual(['p2']);
  });
});

test('actors that all ask for more, over and over, end few streams of each other', () => {
  const { take, ended } = slotsOf(60, 20);
  const random = new SeededRandom(7);
  const ask = () => {
    const actor = random.between(0, 29);
    take(`${String.fromCodePoint(0x4e00 + actor)}1`, `192.0.2.${random.between(0, actor % 7)}`);
  };
  for (let time = 0; time < 10_000; time += 1) ask();
  const before = ended.length;
  for (let time = 0; time < 10_000; time += 1) ask();
  expect([before < 600, ended.length]).toEqual([true, before]);
});

test('an actor has at most its own slots, though others are free', () => {
  const { take, ended } = slotsOf(10, 2);
  for (const name of ['a1', 'a2']) take(name);
  expect([take('a3'), ended]).toMatchObject([overloaded('FOLLOWERS_PER_ACTOR_MAX'), []]);
});

test('a slot that was left is free, once', () => {
  const { slots, take } = slotsOf(2, 2);
  const [first] = [take('a1'), take('b1')] as FollowerSlot[];
  if (first === undefined) throw new Error('no slot');
  for (let times = 0; times < 2; times += 1) slots.leave(first);
  expect(slots.count).toBe(1);
  take('c1');
  expect(take('d1')).toMatchObject(overloaded('FOLLOWERS_MAX'));
});

describe('a stream that loses its slot', () => {
  const last = (streams: readonly RigStream[]) => streams.map(({ error }) => error?.code ?? null);

  test('ends with an error that says what to do, and the others go on', async () => {
    const rig = await FollowersRig.withMaster({ bounds: { total: 3, perActor: 3 } });
    await rig.commit(grant({ access: 'read' }));
    const many = [rig.followLedger(buyer), rig.followLedger(buyer), rig.followLedger(buyer)];
    await rig.settle();
    const other = rig.followLedger(supplier);
    await rig.settle();
    expect(last([...many, other])).toEqual([null, null, 'overloaded', null]);
    expect(many[2]?.error).toMatchObject(overloaded('FOLLOWERS_MAX'));
    expect(many[2]?.error?.message).toContain('resume behind the last message');
    expect([rig.ended, rig.followers.count]).toEqual([['displaced'], 3]);
    expect(other.shown).toEqual(['caughtUp']);
    for (const stream of [...many, other]) stream.leave();
    await rig.settle();
    expect(rig.followers.count).toBe(0);
  });

  test('before it has begun ends likewise', async () => {
    const held = Promise.withResolvers<void>();
    const rig = await FollowersRig.withMaster({
      store: (inner) => beforeCalls(inner, { head: () => held.promise }),
      bounds: { total: 2, perActor: 2 },
    });
    await rig.commit(grant({ access: 'read' }));
    const streams = [rig.followLedger(buyer), rig.followLedger(buyer), rig.followMaster(delegate)];
    await rig.settle();
    expect([last(streams), rig.followers.count]).toEqual([[null, 'overloaded', null], 2]);
    held.resolve();
    await rig.settle();
    expect(last(streams)).toEqual([null, 'overloaded', null]);
    expect([streams[0]?.shown, streams[1]?.shown, streams[2]?.shown]).toEqual([['caughtUp'], [], ['caughtUp']]);
    for (const stream of streams) stream.leave();
    await rig.settle();
    expect(rig.followers.count).toBe(0);
  });
});
