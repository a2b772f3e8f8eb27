import { describe, expect, test } from 'vitest';
import { passivateAfterMs } from '../../../src/actors/bounds.ts';
import { append, commandKey, createMaster, openLedger } from '../../support/commands.ts';
import { faultyLedgerStore, type StoreFault, scriptedFaults } from '../../support/store-faults.ts';
import { codeOf, type Rig, rig, storeWith } from '../../support/world.ts';

const hourMs = 60 * 60_000;

describe('the command keys that an actor looks for in the store', () => {
  /** A world that counts the command keys looked for. */
  function counted(): Rig & { readonly lookedFor: string[] } {
    const lookedFor: string[] = [];
    const world = rig({
      wrap: (memory) =>
        storeWith(memory, {
          findCommands: (ledgerId, commandKeys) => {
            lookedFor.push(...commandKeys.map(({ id }) => id));
            return memory.findCommands(ledgerId, commandKeys);
          },
        }),
    });
    return { ...world, lookedFor };
  }

  test('are none of a ledger that it began, until one is sent again', async () => {
    const { newActor, lookedFor } = counted();
    const actor = newActor();
    await actor.submit(openLedger());
    await actor.submit(createMaster());
    await actor.submit(append({ commandKeys: [commandKey('one')] }));
    await actor.submit(append({ commandKeys: [commandKey('two')] }));
    expect(lookedFor).toEqual([]);
    expect((await actor.submit(append({ commandKeys: [commandKey('one')] }))).replayed).toBe(true);
    expect(lookedFor).toEqual(['one']);
  });

  test('are none after it has left memory and come back, as long as nobody else has written', async () => {
    const { directory, clock, lookedFor } = counted();
    const node = directory();
    for (const command of [openLedger(), createMaster(), append({ commandKeys: [commandKey('one')] })])
      await node.submit(command);
    await clock.advance(2 * passivateAfterMs);
    expect(node.load().ledgers).toBe(0);
    expect((await node.submit(append({ commandKeys: [commandKey('two')] }))).replayed).toBe(false);
    expect(lookedFor).toEqual([]);
    expect((await node.submit(append({ commandKeys: [commandKey('one')] }))).replayed).toBe(true);
    expect(lookedFor).toEqual(['one']);
  });

  test('are all of a ledger that was there when it came, whatever its clock is set to', async () => {
    const { newActor, clock, lookedFor } = counted();
    await newActor().submit(openLedger());
    const actor = newActor();
    await actor.submit(createMaster());
    await actor.submit(append({ commandKeys: [commandKey('before')] }));
    clock.jump(26 * hourMs);
    await actor.submit(append({ commandKeys: [commandKey('after')] }));
    expect(lookedFor).toEqual(['before', 'after']);
  });

  test.for<StoreFault>(['applied', 'lost', 'late', 'late-before-claim'])(
    'are found behind an append that is %s, by a new actor of the node too',
    async (fault) => {
      const faults = scriptedFaults();
      const world = rig({ wrap: (memory) => faultyLedgerStore(memory, faults.choose) });
      const node = world.directory();
      for (const command of [openLedger(), createMaster(), append({ commandKeys: [commandKey('one')] })])
        await node.submit(command);
      faults.fail('append', fault);
      expect(await codeOf(node.submit(append({ commandKeys: [commandKey('two')] })))).toBe('carried out');
      await world.clock.advance(2 * passivateAfterMs);
      expect(node.load().ledgers).toBe(0);
      for (const id of ['two', 'one'])
        expect((await node.submit(append({ commandKeys: [commandKey(id)] }))).replayed).toBe(true);
      expect((await world.log()).filter(({ eventType }) => eventType === 'SHIPMENT_DISPATCHED')).toHaveLength(2);
    },
  );

  test('are all of a ledger that another one began, and of one that another one wrote to meanwhile', async () => {
    const { newActor, lookedFor, meter } = counted();
    const [first, second] = [newActor(), newActor()];
    await first.submit(openLedger());
    await first.submit(createMaster());
    await second.submit(append({ commandKeys: [commandKey('of the second')] }));
    expect(lookedFor).toEqual(['of the second']);
    // It takes it for new, is fenced, and looks.
    expect(meter.fencings).toBe(0);
    expect((await first.submit(append({ commandKeys: [commandKey('of the second')] }))).replayed).toBe(true);
    expect(meter.fencings).toBe(1);
    expect(await codeOf(first.submit(append({ commandKeys: [commandKey('of the second', 'other')] })))).toBe(
      'idempotency_key_reused',
    );
  });
});
