import { describe, expect, test } from 'vitest';
import type { Directory } from '../../../src/actors/routing/directory.ts';
import { NotOwner, type Peers, PeerUnreachable } from '../../../src/actors/routing/peers.ts';
import type { Placement } from '../../../src/actors/routing/placement.ts';
import { shardOf } from '../../../src/actors/routing/shard.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { append, createMaster, ledgerId, openLedger, uuid } from '../../support/commands.ts';
import { emptyLedgerData } from '../../support/memory-store/ledger-data.ts';
import { codeOf, faultsOf, rig, startMs, storeWith } from '../../support/world.ts';

const shard = shardOf(ledgerId, 16);

/** Nodes over one store; who owns the shard can be changed. */
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
  test('is carried out by the owner', async () => {
    const { a, b, log } = await nodes();
    expect((await b.directory.submit(append())).event.seq).toBe(3);
    expect([a.directory.load().ledgers, b.directory.load().ledgers]).toEqual([1, 0]);
    expect(await log()).toHaveLength(4);
  });

  test('is not carried out by a node that knows another owner, which it names', async () => {
    const { b, log } = await nodes();
    const error = await b.directory.carryOut(append()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NotOwner);
    expect(error).toMatchObject({ owner: 'node-a' });
    expect(await log()).toHaveLength(3);
  });

  test('is carried out where no owner is known: the store decides', async () => {
    const { b, owner, log } = await nodes();
    owner.id = null;
    expect((await b.directory.carryOut(append())).event.seq).toBe(3);
    expect(faultsOf(await log())).toEqual([]);
  });

  test('finds no owner in a node that has stopped', async () => {
    const { a } = await nodes();
    await a.directory[Symbol.asyncDispose]();
    await expect(a.directory.carryOut(append())).rejects.toMatchObject({ name: 'NotOwner', owner: null });
  });
});

describe('the owner that worked', () => {
  test('is asked again without looking it up', async () => {
    const { b, located } = await nodes();
    for (let sent = 0; sent < 5; sent++) await b.directory.submit(append());
    expect(located.filter((self) => self === 'node-b')).toHaveLength(1);
  });

  test('is forgotten when it says that it is not', async () => {
    const { b, owner, located, asked } = await nodes();
    await b.directory.submit(append());
    owner.id = 'node-b';
    located.length = 0;
    expect((await b.directory.submit(append())).event.seq).toBe(4);
    expect((await b.directory.submit(append())).event.seq).toBe(5);
    expect(asked).toEqual(['node-a', 'node-a']);
    expect(located).toContain('node-b');
  });

  test('is forgotten when it cannot be reached, and the command is carried out here', async () => {
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
  test('ends what runs, then calls release, and what came meanwhile goes to the heir', async () => {
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

  test('is served here again where release failed', async () => {
    const { a } = await nodes();
    const failing = a.directory.leave(shard, async () => {
      throw new Error('Redis');
    });
    await expect(failing).rejects.toThrow('Redis');
    expect((await a.directory.submit(append())).event.seq).toBe(3);
  });

  test('others are not held up by it', async () => {
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
  test('carries nothing out for others, who carry it out themselves', async () => {
    const { a, b, clockOfA, asked, log } = await nodes();
    clockOfA.isRight = false;
    await expect(a.directory.carryOut(append())).rejects.toMatchObject({ name: 'NotOwner', owner: null });
    expect((await b.directory.submit(append())).event.seq).toBe(3);
    expect(asked).toEqual(['node-a']);
    expect(await log()).toHaveLength(4);
  });

  test('refuses what it would decide itself, and writes nothing, until its clock is right', async () => {
    const { a, clockOfA, log } = await nodes();
    clockOfA.isRight = false;
    expect(await codeOf(a.directory.submit(append()))).toBe('unavailable');
    expect(await log()).toHaveLength(3);
    clockOfA.isRight = true;
    expect((await a.directory.submit(append())).event.seq).toBe(3);
  });

  test('forwards what another node owns, and does not take its place where that one cannot be reached', async () => {
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

  test('writes nothing of what it had taken before', async () => {
    const { start, owner, log } = await nodes();
    owner.id = 'node-c';
    // Right while the directory takes them, and off when their ledger is to decide them.
    let asked = 0;
    const { directory } = start('node-c', { isClockRight: () => asked++ < 200 });
    const waiting = Array.from({ length: 200 }, () => codeOf(directory.submit(append())));
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['unavailable']));
    expect(await log()).toHaveLength(3);
  });

  test('hands a shard over, and what comes meanwhile goes to the heir', async () => {
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

describe('the pace of loading', () => {
  test('two hundred ledgers a second come into memory, and each keeps the order of its commands', async () => {
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

  test('that would be loaded after its deadline is refused, and takes nothing of the limit', async () => {
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
});

test('a ledger that another node claimed, wrote on and saved while it was loaded here is no broken chain', async () => {
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
