import { describe, expect, test } from 'vitest';
import type { LeaseServer } from '../../../cluster/placement/lease-server.ts';
import { Leases } from '../../../cluster/placement/leases.ts';
import { defaultTimings } from '../../../cluster/placement/timings.ts';

/** A lease server in memory, which may fail, and a clock that the test moves. */
function world() {
  let now = 1_000;
  const stored = new Map<number, { owner: string; token: string }>();
  let failing: 'no' | 'lost' | 'unanswered' = 'no';
  let takesMs = 0;
  const acquired: string[] = [];
  const step = async <T>(work: () => T): Promise<T> => {
    if (failing === 'lost') throw new Error('no answer');
    const result = work();
    now += takesMs;
    if (failing === 'unanswered') throw new Error('no answer');
    return result;
  };
  const server: LeaseServer = {
    acquire: ({ shard, token }, owner) =>
      step(() => {
        acquired.push(token);
        const there = stored.get(shard);
        if (there !== undefined && there.token !== token && !(there.token === '' && there.owner === owner))
          return { held: false, owner: there.owner };
        stored.set(shard, { owner, token });
        return { held: true };
      }),
    renew: (leases) =>
      step(
        () =>
          new Set(leases.filter(({ shard, token }) => stored.get(shard)?.token === token).map(({ shard }) => shard)),
      ),
    release: ({ shard, token }, heir) =>
      step(() => {
        if (stored.get(shard)?.token !== token) return;
        if (heir === null) stored.delete(shard);
        else stored.set(shard, { owner: heir, token: '' });
      }),
    owner: (shard) => step(() => stored.get(shard)?.owner ?? null),
    owners: () => step(() => new Map(Array.from(stored, ([shard, { owner }]) => [shard, owner]))),
  };
  let drawn = 0;
  const random = (bytes: number) => Buffer.alloc(bytes, ++drawn);
  const node = (self: string) => new Leases({ self, server, timings: defaultTimings, monotonicMs: () => now, random });
  return {
    stored,
    acquired,
    node,
    pass: (ms: number) => {
      now += ms;
    },
    fail: (how: typeof failing) => {
      failing = how;
    },
    slow: (ms: number) => {
      takesMs = ms;
    },
  };
}

describe('a lease', () => {
  test('is held by one node, once the server has confirmed it', async () => {
    const { node } = world();
    const [a, b] = [node('a'), node('b')];
    expect(await a.acquire(1)).toEqual({ held: true });
    expect(await b.acquire(1)).toEqual({ held: false, owner: 'a' });
    expect([a.held, b.held]).toEqual([[1], []]);
    expect([await a.locate(1), await b.locate(1)]).toEqual(['a', 'a']);
  });

  test('that may have run out while its holder slept counts again only after a renewal', async () => {
    const { node, pass, fail } = world();
    const a = node('a');
    await a.acquire(1);
    expect([a.holds(1), a.holds(2)]).toEqual([true, false]);
    pass(defaultTimings.leaseTtlMs);
    expect([a.holds(1), a.held]).toEqual([false, [1]]);
    await a.renew([1]);
    expect(a.holds(1)).toBe(true);
    fail('lost');
    await expect(a.renew([1])).rejects.toThrow('no answer');
    pass(defaultTimings.leaseTtlMs);
    expect(a.holds(1)).toBe(false);
  });

  test('counts while the server does not answer renewals, unless its holder sleeps', async () => {
    const { node, pass, fail } = world();
    const a = node('a');
    await a.acquire(1);
    fail('lost');
    const renewInVain = () => expect(a.renew([1])).rejects.toThrow('no answer');
    for (let renewals = 0; renewals < 10; renewals++) {
      pass(defaultTimings.renewEveryMs);
      await renewInVain();
      expect(a.holds(1)).toBe(true);
    }
    pass(defaultTimings.leaseTtlMs);
    expect(a.holds(1)).toBe(false);
    await renewInVain();
    expect(a.holds(1)).toBe(false);
    pass(defaultTimings.renewEveryMs);
    await renewInVain();
    expect(a.holds(1)).toBe(true);
  });

  test('whose answer was lost is not held, and is acquired with the same token', async () => {
    const { node, fail, acquired } = world();
    const a = node('a');
    fail('unanswered');
    await expect(a.acquire(1)).rejects.toThrow('no answer');
    expect(a.held).toEqual([]);
    fail('no');
    expect(await a.acquire(1)).toEqual({ held: true });
    expect(new Set(acquired).size).toBe(1);
  });

  test('has a new token at each acquisition', async () => {
    const { node, acquired } = world();
    const a = node('a');
    await a.acquire(1);
    await a.release(1, null);
    await a.acquire(1);
    expect(new Set(acquired).size).toBe(2);
  });

  test('counts from the time of its request or last renewal, less the margin', async () => {
    const { node, slow, pass, stored } = world();
    const a = node('a');
    const expectHeldUntil = async (endMs: number) => {
      const { owner, token } = stored.get(1) ?? { owner: '', token: '' };
      stored.set(1, { owner: 'b', token: 'x' });
      pass(endMs - 1);
      expect(await a.locate(1)).toBe('a');
      pass(1);
      expect(await a.locate(1)).toBe('b');
      stored.set(1, { owner, token });
    };
    const validMs = defaultTimings.leaseTtlMs - defaultTimings.marginMs;
    slow(400);
    await a.acquire(1);
    slow(0);
    await expectHeldUntil(validMs - 400);
    slow(300);
    expect(await a.renew([1, 2])).toEqual(new Set([1]));
    slow(0);
    await expectHeldUntil(validMs - 300);
  });

  test('that the server does not know at a renewal is lost, and not acquired again', async () => {
    const { node, stored } = world();
    const a = node('a');
    await a.acquire(1);
    stored.clear();
    expect(await a.renew([1])).toEqual(new Set());
    expect(a.held).toEqual([]);
    expect(stored.size).toBe(0);
    expect(await a.locate(1)).toBeNull();
  });

  test('that is released for an heir names the heir to all nodes, and no other node can acquire it', async () => {
    const { node, pass } = world();
    const [a, b, c] = [node('a'), node('b'), node('c')];
    await a.acquire(1);
    await a.release(1, 'b');
    expect(await a.locate(1)).toBe('b');
    expect(await c.acquire(1)).toEqual({ held: false, owner: 'b' });
    expect(await b.locate(1)).toBe('b');
    expect(await b.acquire(1)).toEqual({ held: true });
    pass(defaultTimings.heirMs + 1);
    expect(await a.locate(1)).toBe('b');
  });
});

describe('while the server cannot be reached', () => {
  test('owners keep their shards beyond the end of their leases', async () => {
    const { node, fail, pass } = world();
    const a = node('a');
    await a.acquire(1);
    fail('lost');
    pass(60_000);
    expect(await a.locate(1)).toBe('a');
    await expect(a.renew([1])).rejects.toThrow('no answer');
    expect(a.held).toEqual([1]);
  });

  test('other nodes use the owners that they knew last', async () => {
    const { node, fail, pass } = world();
    const [a, b] = [node('a'), node('b')];
    await a.acquire(1);
    expect(await b.locate(1)).toBe('a');
    fail('lost');
    pass(60_000);
    expect(await b.locate(1)).toBe('a');
    expect(await b.locate(2)).toBeNull();
  });

  test('a released shard is not held any more', async () => {
    const { node, fail } = world();
    const a = node('a');
    await a.acquire(1);
    fail('lost');
    await expect(a.release(1, 'b')).rejects.toThrow('no answer');
    expect(a.held).toEqual([]);
    expect(await a.locate(1)).toBe('b');
  });
});

test('a reading of all owners does not replace what was learned after it began', async () => {
  const { node, stored } = world();
  const [a, b] = [node('a'), node('b')];
  await a.acquire(1);
  await b.acquire(1);
  b.note(new Map(), 4, 500);
  stored.clear();
  expect(await b.locate(1)).toBe('a');
  b.note(new Map([[1, 'c']]), 4, 2_000);
  expect(await b.locate(1)).toBe('c');
});
