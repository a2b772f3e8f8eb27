import { describe, expect, test } from 'vitest';
import type { Directory } from '../../../src/actors/routing/directory.ts';
import { NotOwner, type Peers, PeerUnreachable } from '../../../src/actors/routing/peers.ts';
import type { Placement } from '../../../src/actors/routing/placement.ts';
import { shardOf } from '../../../src/actors/routing/shard.ts';
import { limits } from '../../../src/runtime/limits/limits.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { append, createMaster, ledgerId, openLedger, uuid } from '../../support/commands.ts';
import { emptyLedgerData } from '../../support/memory-store/ledger-data.ts';
import { codeOf, faultsOf, rig, startMs, storeWith } from '../../support/world.ts';

const shard = shardOf(ledgerId, 16);

/** Nodes over one store. `owner`: the owner of the shard. */
async function nodes() {
  const clock = new ManualClock(startMs);
  const data = emptyLedgerData();
  const owner: { id: string | null } = { id: 'node-a' };
  const located: string[] = [];
  const directories = new Map<string, Directory>();
  const asked: string[] = [];
  let broken: Error | null = null;
  const peers: Peers = {
    ask: async (to, command) => {
      asked.push(to);
      if (broken !== null) throw broken;
      const target = directories.get(to);
      if (target === undefined) throw new PeerUnreachable(new Error('refused'), false);
      return target.carryOut(command);
    },
  };
  const start = (
    self: string,
    parts: { readonly activationsPerSecond?: number; readonly isClockRight?: () => boolean } = {},
  ) => {
    const placement: Placement = {
      locate: async () => {
        located.push(self);
        return owner.id;
      },
    };
    const world = rig({ clock, data });
    const directory = world.directory({ self, placement, peers, ...parts });
    directories.set(self, directory);
    return { ...world, directory };
  };
  const clockOfA = { isRight: true };
  const a = start('node-a', { isClockRight: () => clockOfA.isRight });
  const b = start('node-b');
  await a.directory.submit(openLedger());
  await a.directory.submit(createMaster());
  located.length = 0;
  return {
    a,
    b,
    start,
    owner,
    located,
    asked,
    clock,
    clockOfA,
    log: a.log,
    breakPeers: (error: Error | null) => {
      broken = error;
    },
  };
}

describe('a command of another node', () => {
  test('is run by the owner', async () => {
    const { a, b, log } = await nodes();
    expect((await b.directory.submit(append())).event.seq).toBe(3);
    expect([a.directory.load().ledgers, b.directory.load().ledgers]).toEqual([1, 0]);
    expect(await log()).toHaveLength(4);
  });

  test('is not run by a node that knows another owner, which it names', async () => {
    const { b, log } = await nodes();
    const error = await b.directory.carryOut(append()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NotOwner);
    expect(error).toMatchObject({ owner: 'node-a' });
    expect(await log()).toHaveLength(3);
  });

  test('is run by a node that knows no owner', async () => {
    const { b, owner, log } = await nodes();
    owner.id = null;
    expect((await b.directory.carryOut(append())).event.seq).toBe(3);
    expect(faultsOf(await log())).toEqual([]);
  });

  test('is not run by a node that has stopped', async () => {
    const { a } = await nodes();
    await a.directory[Symbol.asyncDispose]();
    await expect(a.directory.carryOut(append())).rejects.toMatchObject({ name: 'NotOwner', owner: null });
  });
});

describe('the known owner of a shard', () => {
  test('is used again without a look-up', async () => {
    const { b, located } = await nodes();
    for (let sent = 0; sent < 5; sent++) await b.directory.submit(append());
    expect(located.filter((self) => self === 'node-b')).toHaveLength(1);
  });

  test('is forgotten when it says that it is not the owner', async () => {
    const { b, owner, located, asked } = await nodes();
    await b.directory.submit(append());
    owner.id = 'node-b';
    located.length = 0;
    expect((await b.directory.submit(append())).event.seq).toBe(4);
    expect((await b.directory.submit(append())).event.seq).toBe(5);
    expect(asked).toEqual(['node-a', 'node-a']);
    expect(located).toContain('node-b');
  });

  test('is forgotten when it cannot be reached, and the command runs here', async () => {
    const { b, breakPeers, located, log } = await nodes();
    await b.directory.submit(append());
    breakPeers(new PeerUnreachable(new Error('reset')));
    located.length = 0;
    expect((await b.directory.submit(append())).event.seq).toBe(4);
    breakPeers(null);
    await b.directory.submit(append());
    expect(located).toContain('node-b');
    expect(faultsOf(await log())).toEqual([]);
  });
});

describe('a shard that is handed over', () => {
  test('ends running commands, then calls release; later commands go to the heir', async () => {
    const { a, b, owner, log } = await nodes();
    const running = Promise.all(Array.from({ length: 80 }, () => a.directory.submit(append())));
    await settled();
    const released: number[] = [];
    const left = a.directory.leave(shard, async () => {
      owner.id = 'node-b';
      released.push(a.directory.load().ledgers);
    });
    const late = a.directory.submit(append({ payload: '{"late":1}' }));
    const fromPeer = a.directory.carryOut(append()).catch((error: unknown) => error);
    await left;
    expect(await running).toHaveLength(80);
    expect(released).toEqual([0]);
    expect((await late).event.payload).toBe('{"late":1}');
    expect(await fromPeer).toMatchObject({ name: 'NotOwner', owner: 'node-b' });
    expect([a.directory.load().ledgers, b.directory.load().ledgers]).toEqual([0, 1]);
    expect(faultsOf(await log())).toEqual([]);
  });

  test('is served here again if release fails', async () => {
    const { a } = await nodes();
    const failing = a.directory.leave(shard, async () => {
      throw new Error('Redis');
    });
    await expect(failing).rejects.toThrow('Redis');
    expect((await a.directory.submit(append())).event.seq).toBe(3);
  });

  test('holds a command no longer than until its deadline', async () => {
    const { a, clock, log } = await nodes();
    const released = Promise.withResolvers<void>();
    const left = a.directory.leave(shard, () => released.promise);
    const deadline = clock.now() + 100;
    const waiting = [a.directory.submit(append({ deadline })), a.directory.carryOut(append({ deadline }))];
    const codes = Promise.all(waiting.map(codeOf));
    await clock.advance(101);
    expect(await codes).toEqual(['unavailable', 'unavailable']);
    released.resolve();
    await left;
    await settled();
    expect(await log()).toHaveLength(3);
  });

  test('does not delay other shards', async () => {
    const { a } = await nodes();
    const other = Array.from({ length: 50 }, (_, at) => uuid(0x900 + at)).find((id) => shardOf(id, 16) !== shard);
    if (other === undefined) throw new Error('no other shard');
    let release = () => {};
    const left = a.directory.leave(
      shard,
      () =>
        new Promise<void>((resolve) => {
          release = resolve;
        }),
    );
    expect(await codeOf(a.directory.submit(openLedger({ ledgerId: other })))).toBe('carried out');
    release();
    await left;
  });
});

describe('a node whose clock is off', () => {
  test('runs no commands of other nodes, which then run them', async () => {
    const { a, b, clockOfA, asked, log } = await nodes();
    clockOfA.isRight = false;
    await expect(a.directory.carryOut(append())).rejects.toMatchObject({ name: 'NotOwner', owner: null });
    expect((await b.directory.submit(append())).event.seq).toBe(3);
    expect(asked).toEqual(['node-a']);
    expect(await log()).toHaveLength(4);
  });

  test('refuses the commands of its own shards until its clock is right', async () => {
    const { a, clockOfA, log } = await nodes();
    clockOfA.isRight = false;
    expect(await codeOf(a.directory.submit(append()))).toBe('unavailable');
    expect(await log()).toHaveLength(3);
    clockOfA.isRight = true;
    expect((await a.directory.submit(append())).event.seq).toBe(3);
  });

  test('forwards commands of other nodes’ shards, and does not run them if the owner cannot be reached', async () => {
    const { a, owner, clockOfA, breakPeers, log } = await nodes();
    owner.id = 'node-b';
    clockOfA.isRight = false;
    expect((await a.directory.submit(append())).event.seq).toBe(3);
    breakPeers(new PeerUnreachable(new Error('refused'), false));
    expect(await codeOf(a.directory.submit(append()))).toBe('unavailable');
    breakPeers(new PeerUnreachable(new Error('reset'), true));
    expect(await codeOf(a.directory.submit(append()))).toBe('outcome_unknown');
    expect(await log()).toHaveLength(4);
  });

  test('writes no command that it had accepted before', async () => {
    const { start, owner, log } = await nodes();
    owner.id = 'node-c';
    // The clock is right when the directory accepts the commands, and off when the ledger decides them.
    let asked = 0;
    const { directory } = start('node-c', { isClockRight: () => asked++ < 200 });
    const waiting = Array.from({ length: 200 }, () => codeOf(directory.submit(append())));
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['unavailable']));
    expect(await log()).toHaveLength(3);
  });

  test('hands a shard over; commands that come meanwhile go to the heir', async () => {
    const { a, clockOfA, owner, log } = await nodes();
    clockOfA.isRight = false;
    const left = a.directory.leave(shard, async () => {
      owner.id = 'node-b';
    });
    const late = a.directory.submit(append());
    await left;
    expect((await late).event.seq).toBe(3);
    expect(await log()).toHaveLength(4);
  });
});

describe('the rate of loading ledgers', () => {
  test('is two hundred a second, and each ledger keeps the order of its commands', async () => {
    const { start, owner, clock } = await nodes();
    const { directory } = start('node-c', { activationsPerSecond: 200 });
    owner.id = 'node-c';
    const ids = Array.from({ length: 400 }, (_, at) => uuid(0x10_000 + at));
    const opening = ids.map((id) => codeOf(directory.submit(openLedger({ ledgerId: id }))));
    const behind = ids.map((id) => codeOf(directory.submit(createMaster({ ledgerId: id, masterId: id }))));
    await settled();
    expect(directory.load().ledgers).toBeLessThanOrEqual(60);
    await clock.advance(500);
    expect(directory.load().ledgers).toBeLessThanOrEqual(170);
    await clock.advance(2_000);
    const codes = [...(await Promise.all(opening)), ...(await Promise.all(behind))];
    expect(new Set(codes)).toEqual(new Set(['carried out']));
  });

  test('counts no command that is refused because of its deadline', async () => {
    const { start, owner, clock } = await nodes();
    const { directory } = start('node-c', { activationsPerSecond: 1 });
    owner.id = 'node-c';
    await directory.submit(openLedger({ ledgerId: uuid(0x20_000) })).catch(() => {});
    const deadline = clock.now() + 100;
    expect(await codeOf(directory.submit(openLedger({ ledgerId: uuid(0x20_001), deadline })))).toBe('unavailable');
    const later = codeOf(directory.submit(openLedger({ ledgerId: uuid(0x20_002) })));
    await clock.advance(1_100);
    expect(await later).toBe('carried out');
  });

  test('goes on after the clock was set back by an hour', async () => {
    const { start, owner, clock } = await nodes();
    const { directory } = start('node-c', { activationsPerSecond: 200 });
    owner.id = 'node-c';
    const open = (id: number) => codeOf(directory.submit(openLedger({ ledgerId: uuid(id), deadline: deadline() })));
    const deadline = () => clock.now() + limits.callTimeoutMs;
    expect(await open(0x20_000)).toBe('carried out');
    clock.jump(-3_600_000);
    const after = open(0x20_001);
    await clock.advance(1_000);
    expect(await after).toBe('carried out');
  });
});

test('a ledger that another node writes while it is loaded here is no broken chain', async () => {
  const clock = new ManualClock(startMs);
  const data = emptyLedgerData();
  const first = rig({ clock, data });
  const opening = first.directory();
  await opening.submit(openLedger());
  await opening.submit(createMaster());
  await opening[Symbol.asyncDispose]();
  let between: (() => Promise<void>) | null = async () => {
    between = null;
    const other = rig({ clock, data }).directory();
    await Promise.all(Array.from({ length: 100 }, () => other.submit(append())));
    await other[Symbol.asyncDispose]();
  };
  const late = rig({
    clock,
    data,
    wrap: (memory) =>
      storeWith(memory, {
        claim: async (id) => {
          const claim = await memory.claim(id);
          await between?.();
          return claim;
        },
      }),
  });
  const directory = late.directory();
  expect(await codeOf(directory.submit(append()))).toBe('unavailable');
  expect((await directory.submit(append())).event.seq).toBe(103);
  expect(faultsOf(await first.log())).toEqual([]);
});
