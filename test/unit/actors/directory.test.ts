import { describe, expect, test } from 'vitest';
import { ledgersInMemoryMax, passivateAfterMs } from '../../../src/actors/bounds.ts';
import type { DirectoryParts } from '../../../src/actors/routing/directory.ts';
import { NotOwner, type Peers, PeerUnreachable } from '../../../src/actors/routing/peers.ts';
import type { Placement } from '../../../src/actors/routing/placement.ts';
import { shardOf } from '../../../src/actors/routing/shard.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import { sha256Buffer } from '../../../src/domain/keys/hash-buffer.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import {
  append,
  commandKey,
  createMaster,
  grant,
  ledgerId,
  openLedger,
  stranger,
  uuid,
} from '../../support/commands.ts';
import { emptyLedgerData } from '../../support/memory-store/ledger-data.ts';
import { codeOf, faultsOf, openOrder, rig, startMs, storeWith } from '../../support/world.ts';

function placedAt(owner: string | null): Placement {
  return { locate: async () => owner };
}

/** Node a, with an open ledger, and whatever else its directory is given. */
async function node(parts: Partial<DirectoryParts> = {}) {
  const world = rig();
  const home = world.directory();
  await openOrder(home);
  return {
    ...world,
    home,
    directory: world.directory(parts),
    /** Another directory of node a, to which the ledger is another node's. */
    owning: (remote: Peers, owner: string) => world.directory({ peers: remote, placement: placedAt(owner) }),
  };
}

/** Peers that note what they are asked. */
function peers(ask: (node: string, command: Command) => ReturnType<Peers['ask']>): Peers & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    ask: (to, command) => {
      asked.push(to);
      return ask(to, command);
    },
  };
}

/** Always rejects with this error. */
function failing(error: Error): () => Promise<never> {
  return () => Promise.reject(error);
}

describe('batches that stand', () => {
  test('are those that the store has confirmed: of events, and of refusals', async () => {
    const world = await node();
    const { directory } = world;
    expect(directory.batches.confirmed).toBe(0);
    await directory.submit(append({ commandKeys: [commandKey('one')] }));
    expect(directory.batches.confirmed).toBe(1);
    expect(await codeOf(directory.submit(append({ actorId: stranger })))).toBe('not_found');
    expect(directory.batches.confirmed).toBe(2);
    await directory.submit(append({ commandKeys: [commandKey('one')] }));
    expect(directory.batches.confirmed).toBe(2);
  });

  test('are none that the store did not answer', async () => {
    const unavailable = failing(new LedgerError('unavailable', 'The store cannot be reached.'));
    const world = rig({ wrap: (memory) => storeWith(memory, { append: unavailable, stands: unavailable }) });
    const directory = world.directory();
    expect(await codeOf(directory.submit(openLedger()))).toBe('unavailable');
    expect(directory.batches.confirmed).toBe(0);
  });
});

describe('batches that run', () => {
  test('are those that wait for the store, until it answers or fails', async () => {
    const held: PromiseWithResolvers<void>[] = [];
    const wait = () => {
      const answer = Promise.withResolvers<void>();
      held.push(answer);
      return answer.promise;
    };
    const world = rig({
      wrap: (memory) => storeWith(memory, { append: (...given) => wait().then(() => memory.append(...given)) }),
    });
    const directory = world.directory();
    expect(directory.batches.running).toBe(0);
    const opened = directory.submit(openLedger());
    await settled();
    expect(directory.batches.running).toBe(1);
    held[0]?.resolve();
    await opened;
    await settled();
    expect(directory.batches.running).toBe(0);
    const made = codeOf(directory.submit(createMaster()));
    await settled();
    expect(directory.batches.running).toBe(1);
    held[1]?.reject(new LedgerError('unavailable', 'The store cannot be reached.'));
    expect(await made).toBe('unavailable');
    await settled();
    expect(directory.batches.running).toBe(0);
  });
});

describe('where a command is carried out', () => {
  test('the shard of a ledger is the first 32 bits of a hash, modulo their number', () => {
    for (const count of [1, 16, 256, 1_000]) {
      const expected = Number.parseInt(sha256Buffer(`v1|${ledgerId}`).toString('hex').slice(0, 8), 16) % count;
      expect(shardOf(ledgerId, count)).toBe(expected);
    }
    const used = new Set(Array.from({ length: 2_000 }, (_, index) => shardOf(uuid(index), 256)));
    expect(used.size).toBe(256);
  });

  test('by the owner, if that is another node', async () => {
    const world = await node();
    const remote = peers((_, command) => world.home.submit(command));
    const directory = world.owning(remote, 'node-b');
    const { event } = await directory.submit(append());
    expect(event.seq).toBe(3);
    expect(remote.asked).toEqual(['node-b']);
    expect(directory.load().ledgers).toBe(0);
  });

  test('its refusals are passed on as they are, and nothing is tried here', async () => {
    const world = await node();
    const remote = peers(failing(new LedgerError('ledger_closed', 'This ledger is closed.')));
    const directory = world.owning(remote, 'node-b');
    expect(await codeOf(directory.submit(append()))).toBe('ledger_closed');
    expect(directory.load().ledgers).toBe(0);
  });

  test('here, where nobody is known to own it, or placement cannot be reached', async () => {
    const none = peers(failing(new Error('asked')));
    const unreachable: Placement = { locate: failing(new Error('no answer')) };
    for (const placement of [placedAt(null), unreachable, placedAt('node-a')]) {
      const { directory } = await node({ placement, peers: none });
      expect(await codeOf(directory.submit(append()))).toBe('carried out');
    }
    expect(none.asked).toEqual([]);
  });
});

describe('a peer that does not carry it out', () => {
  test('names the owner: that one is asked, once', async () => {
    const world = await node();
    const remote = peers((to, command) => {
      if (to === 'node-b') throw new NotOwner('node-c');
      return world.home.submit(command);
    });
    const directory = world.owning(remote, 'node-b');
    expect(await codeOf(directory.submit(append()))).toBe('carried out');
    expect(remote.asked).toEqual(['node-b', 'node-c']);
    expect(directory.load().ledgers).toBe(0);
  });

  test.each([
    ['knows no owner', null, ['node-b']],
    ['names this node', 'node-a', ['node-b']],
    ['names itself', 'node-b', ['node-b']],
    ['starts a chain of such answers', 'node-c', ['node-b', 'node-c']],
  ])('%s: it is carried out here', async (_, named, asked) => {
    const world = await node();
    const remote = peers(async (to) => {
      throw new NotOwner(to === 'node-c' ? 'node-d' : named);
    });
    const directory = world.owning(remote, 'node-b');
    expect(await codeOf(directory.submit(append()))).toBe('carried out');
    expect(remote.asked).toEqual(asked);
    expect(await world.log()).toHaveLength(4);
  });

  test('cannot be reached: the ledger is claimed and the command carried out here', async () => {
    const world = await node();
    const remote = peers(failing(new PeerUnreachable(new Error('timeout'))));
    expect(await codeOf(world.owning(remote, 'node-b').submit(append()))).toBe('carried out');
    expect(faultsOf(await world.log())).toEqual([]);
  });

  test('carried it out and could not say so: it lands once, with a key and without', async () => {
    for (const commandKeys of [[], [commandKey('k')]]) {
      const world = await node();
      const remote = peers(async (_, command) => {
        await world.home.submit(command);
        throw new PeerUnreachable(new Error('reset'));
      });
      const outcome = await world.owning(remote, 'node-b').submit(append({ commandKeys }));
      expect(outcome.replayed).toBe(true);
      expect(await world.log()).toHaveLength(4);
    }
  });

  test('is still at it: the command is written once, whichever node is first', async () => {
    const world = await node();
    const running: Promise<unknown>[] = [];
    const remote = peers(async (_, command) => {
      running.push(world.home.submit(command));
      throw new PeerUnreachable(new Error('slow'));
    });
    const directory = world.owning(remote, 'node-b');
    const outcomes = Promise.all([append(), append(), append()].map((one) => directory.submit(one)));
    for (let step = 0; step < 40; step++) await world.clock.advance(50);
    await outcomes;
    await Promise.all(running);
    expect(await world.log()).toHaveLength(3 + 3);
    expect(faultsOf(await world.log())).toEqual([]);
  });

  test('may have carried it out: failing here is no proof that it did not', async () => {
    const world = await node();
    const remote = peers(async (_, command) => {
      await world.home.submit(command);
      world.clock.jump(20_000);
      throw new PeerUnreachable(new Error('slow'));
    });
    const command = append({ deadline: startMs + 10_000, commandKeys: [commandKey('k')] });
    expect(await codeOf(world.owning(remote, 'node-b').submit(command))).toBe('outcome_unknown');
    expect(await world.log()).toHaveLength(4);
  });

  test('may yet carry it out: a refusal here is no certain one, but for a key that was used twice', async () => {
    const world = await node();
    await world.home.submit(append({ commandKeys: [commandKey('k')] }));
    const silence = new PeerUnreachable(new Error('reset'));
    const directory = world.owning(peers(failing(silence)), 'node-b');
    await expect(directory.submit(append({ actorId: stranger }))).rejects.toMatchObject({
      code: 'outcome_unknown',
      cause: {
        message: 'node-b gave no answer that counts, and this node refused the command',
        errors: [silence, expect.objectContaining({ code: 'not_found' })],
      },
    });
    expect(await codeOf(directory.submit(append({ commandKeys: [commandKey('k', 'other')] })))).toBe(
      'idempotency_key_reused',
    );
  });

  test('may stand with it in the log, whatever another call under its key does here meanwhile', async () => {
    const world = await node();
    const here = append({ commandKeys: [commandKey('k', 'another call')] });
    const elsewhere = append({ commandKeys: [commandKey('k')] });
    const carried: Promise<unknown>[] = [];
    const remote = peers(async (_, command) => {
      const isHeard = command.commandKeys[0]?.fingerprint === elsewhere.commandKeys[0]?.fingerprint;
      if (isHeard) carried.push(world.home.submit(command).catch(() => {}));
      throw new PeerUnreachable(new Error('reset'), isHeard);
    });
    const directory = world.owning(remote, 'node-b');
    const codes = [here, elsewhere].map((command) => codeOf(directory.submit(command)));
    for (let step = 0; step < 40; step++) await world.clock.advance(50);
    expect((await Promise.all(codes))[1]).toBe('outcome_unknown');
    await Promise.all(carried);
    expect(await world.log()).toHaveLength(4);
  });

  test('was certainly never reached: the answer of this node is certain', async () => {
    const world = await node();
    const remote = peers(failing(new PeerUnreachable(new Error('refused'), false)));
    const directory = world.owning(remote, 'node-b');
    expect(await codeOf(directory.submit(append({ actorId: stranger })))).toBe('not_found');
    expect(await codeOf(directory.submit(append({ deadline: startMs })))).toBe('unavailable');
    expect(await codeOf(directory.submit(append()))).toBe('carried out');
  });
});

describe('memory', () => {
  test('a ledger without a command for a minute leaves', async () => {
    const { home, clock } = await node();
    expect(home.load()).toEqual({ ledgers: 1, waiting: 0 });
    await clock.advance(passivateAfterMs / 2);
    await home.submit(append());
    await clock.advance(passivateAfterMs - 1);
    expect(home.load().ledgers).toBe(1);
    await clock.advance(passivateAfterMs / 6);
    expect(home.load().ledgers).toBe(0);
    expect((await home.submit(append())).event.seq).toBe(4);
  });

  test('too many ledgers: the idle ones leave early, without waiting for a regular look', async () => {
    const { clock, directory } = rig();
    const home = directory();
    const touch = async (from: number, count: number) => {
      for (let done = 0; done < count; done += 500) {
        const ids = Array.from({ length: 500 }, (_, index) => uuid(0x10_0000 + from + done + index));
        await Promise.all(ids.map((id) => codeOf(home.submit(append({ ledgerId: id })))));
      }
    };
    await touch(0, ledgersInMemoryMax);
    await settled();
    expect(home.load().ledgers).toBe(ledgersInMemoryMax);
    clock.jump(2_000);
    await touch(ledgersInMemoryMax, 2_000);
    expect(home.load().ledgers).toBeLessThanOrEqual(3_000);
  });

  test('an actor that stopped is replaced by the next command', async () => {
    const { home, log } = await node();
    expect(await codeOf(home.submit({ ...grant(), requested: 'no JSON' }))).toBe('internal');
    expect(await codeOf(home.submit(append()))).toBe('carried out');
    expect(faultsOf(await log())).toEqual([]);
  });
});

describe('closing', () => {
  test('lets what runs end, and takes nothing more', async () => {
    const { home, log } = await node();
    const running = Promise.all(Array.from({ length: 150 }, () => home.submit(append())));
    await settled();
    const more = Promise.all(Array.from({ length: 150 }, () => home.submit(append())));
    await Promise.resolve();
    await Promise.resolve();
    const closing = home[Symbol.asyncDispose]();
    expect(await codeOf(home.submit(append()))).toBe('unavailable');
    await closing;
    expect(home.load().ledgers).toBe(0);
    expect(await running).toHaveLength(150);
    expect(await more).toHaveLength(150);
    expect(await log()).toHaveLength(3 + 300);
  });

  test('what was still looking for its owner is refused, and no ledger comes into memory behind it', async () => {
    let located = () => {};
    const slow: Placement = {
      locate: () =>
        new Promise((resolve) => {
          located = () => resolve('node-a');
        }),
    };
    const { directory, log } = await node({ placement: slow });
    const late = codeOf(directory.submit(append()));
    await directory[Symbol.asyncDispose]();
    located();
    expect(await late).toBe('unavailable');
    expect(directory.load().ledgers).toBe(0);
    expect(await log()).toHaveLength(3);
  });

  test('ends though the clock went back, and leaves no timer', async () => {
    const clock = new ManualClock(startMs);
    const world = rig({ clock, data: emptyLedgerData() });
    const home = world.directory();
    await home.submit(openLedger());
    await settled();
    clock.jump(-3_600_000);
    await home[Symbol.asyncDispose]();
    expect(clock.timers).toBe(0);
  });

  test('saves snapshots before it ends', async () => {
    const world = await node();
    await Promise.all(Array.from({ length: 100 }, () => world.home.submit(append())));
    expect(world.data.snapshots.size).toBe(0);
    await world.home[Symbol.asyncDispose]();
    expect(world.data.snapshots.size).toBe(2);
  });
});
