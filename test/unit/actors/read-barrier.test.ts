import { describe, expect, test } from 'vitest';
import type { Directory } from '../../../src/actors/routing/directory.ts';
import { Fenced } from '../../../src/store/ledger-store.ts';
import { settled } from '../../support/clock.ts';
import { append, ledgerId } from '../../support/commands.ts';
import { twoNodes } from '../../support/two-nodes.ts';
import { codeOf, faultsOf, rig, storeWith } from '../../support/world.ts';

describe('what stands in a ledger', () => {
  test('is certain where this node has written last, without a claim', async () => {
    const { actor, meter } = await twoNodes();
    expect([await actor.readBarrier(), meter.claims]).toEqual([2, []]);
  });

  test('is made certain by a claim where nothing is known of it, and by one alone', async () => {
    const { newActor, meter } = await twoNodes();
    expect(await newActor().readBarrier()).toBe(2);
    expect(meter.claims).toEqual(['certainty']);
  });

  test('is nothing in a ledger without events', async () => {
    expect(await rig().newActor().readBarrier()).toBe(-1);
  });

  test('is made certain by a new claim where another node has written since, and commands go on from there', async () => {
    const { actor, other, meter, log } = await twoNodes();
    await other.submit(append());
    expect([await actor.readBarrier(), meter.claims]).toEqual([3, ['certainty']]);
    expect((await actor.submit(append())).event.seq).toBe(4);
    expect(faultsOf(await log())).toEqual([]);
  });

  test('takes no further event from a write that another node had begun', async () => {
    const arrived = Promise.withResolvers<void>();
    let fenced = 0;
    const { actor, other, log } = await twoNodes((memory) =>
      storeWith(memory, {
        append: async (claim, entries) => {
          await arrived.promise;
          await memory.append(claim, entries).catch((error) => {
            if (error instanceof Fenced) fenced += 1;
            throw error;
          });
        },
      }),
    );
    const writing = other.submit(append({ payload: '{"by":"other"}' }));
    await settled();
    expect(await actor.readBarrier()).toBe(2);
    arrived.resolve();
    expect((await writing).event.seq).toBe(3);
    expect(fenced).toBe(1);
    expect(await log()).toHaveLength(4);
  });

  test('has the events of this node’s own write that is under way', async () => {
    const { actor } = await twoNodes();
    const writing = actor.submit(append());
    await Promise.resolve();
    const asked = [actor.readBarrier(), actor.readBarrier()];
    expect(await Promise.all(asked)).toEqual([3, 3]);
    await writing;
  });

  test('has the write whose outcome nobody could say, if it comes to stand', async () => {
    const { actor, faults, clock, ...here } = await twoNodes();
    const directory = here.directory();
    faults.fail('append', 'late-before-claim');
    faults.fail('claim', 'unavailable', 'unavailable');
    const doubtful = codeOf(actor.submit(append({ deadline: clock.now() + 5 })));
    await clock.advance(100);
    expect([await doubtful, actor.stopped]).toEqual(['outcome_unknown', true]);
    expect(await codeOf(actor.readBarrier())).toBe('unavailable');
    expect(await directory.readBarrier(ledgerId)).toBe(3);
  });

  test('is not certain while the store takes no claim, which commands are not harmed by', async () => {
    const { actor, other, faults } = await twoNodes();
    await other.submit(append());
    faults.fail('claim', 'unavailable');
    const asked = codeOf(actor.readBarrier());
    for (let tick = 0; tick < 3; tick++) await Promise.resolve();
    const written = actor.submit(append());
    expect(await asked).toBe('unavailable');
    expect((await written).event.seq).toBe(4);
  });

  test('can be made certain where the log is damaged', async () => {
    const { data, newActor } = await twoNodes();
    data.ledgers.get(ledgerId)?.entries.set(1, { seq: 1, row: 'svc1\n{}\n{}\n\n{}' });
    const actor = newActor();
    expect(await actor.readBarrier()).toBe(2);
    expect(await codeOf(actor.submit(append()))).toBe('unavailable');
  });
});

describe('a node that does not run the ledger claims nothing', () => {
  const claimsOf = async (prepare: (directory: Directory) => unknown, owner = 'node-a') => {
    const { meter, ...here } = await twoNodes();
    const directory = here.directory({ placement: { locate: async () => owner } });
    await prepare(directory);
    return [await codeOf(directory.readBarrier(ledgerId)), meter.claims];
  };

  test('but the one that runs it does', async () => {
    expect(await claimsOf(() => {})).toEqual(['carried out', ['certainty']]);
  });

  test('where another one does', async () => {
    expect(await claimsOf(() => {}, 'node-b')).toEqual(['unavailable', []]);
  });

  test('while it hands it over', async () => {
    const never = new Promise<void>(() => {});
    const leaveAll = (directory: Directory) => {
      for (let shard = 0; shard < 16; shard++) void directory.leave(shard, () => never);
      return settled();
    };
    expect(await claimsOf(leaveAll)).toEqual(['unavailable', []]);
  });

  test('once it stops', async () => {
    expect(await claimsOf((directory) => directory[Symbol.asyncDispose]())).toEqual(['unavailable', []]);
  });
});
