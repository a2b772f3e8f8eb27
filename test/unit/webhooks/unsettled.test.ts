import { describe, expect, test } from 'vitest';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { append, commandKey, createMaster, delegate, grant, openLedger, supplier } from '../../support/commands.ts';
import { faultyLedgerStore, type StoreFault, scriptedFaults } from '../../support/store-faults.ts';
import { second } from '../../support/webhook-order.ts';
import { typesSent, webhookRig } from '../../support/webhook-rig.ts';
import { codeOf, rig } from '../../support/world.ts';

/** An order whose command is answered `outcome_unknown`: its write fails, and claims fail until its deadline. */
async function unsettled(fault: StoreFault, subscriber: string, command: (deadline: number) => Command) {
  const faults = scriptedFaults();
  const world = webhookRig({ rig: rig({ wrap: (memory) => faultyLedgerStore(memory, faults.choose) }) });
  await world.run(openLedger(), createMaster());
  await world.subscribe(subscriber);
  await world.runToEnd(append({ eventType: 'BEFORE' }));
  faults.fail('append', fault);
  faults.fail('claim', ...Array<'lost'>(20).fill('lost'));
  const code = codeOf(world.run(command(world.clock.now() + second)));
  await world.clock.advance(10 * second);
  expect(await code).toBe('outcome_unknown');
  await world.quiet();
  while (faults.choose('claim') !== null);
  return world;
}

const doubtful = (deadline: number) => append({ eventType: 'DOUBTFUL', commandKeys: [commandKey('k')], deadline });

describe('an event whose append was answered outcome_unknown', () => {
  test.each<StoreFault>(['applied', 'late-before-claim'])(
    'is delivered as soon as a claim succeeds, without a further event (%s)',
    async (fault) => {
      const world = await unsettled(fault, supplier, doubtful);
      expect(typesSent(world)).toEqual(['BEFORE']);
      await world.advance(2 * second);
      expect(typesSent(world)).toEqual(['BEFORE', 'DOUBTFUL']);
      const claims = world.rig.meter.claims.length;
      await world.clock.advance(10 * second);
      expect(world.rig.meter.claims.length).toBe(claims);
    },
  );

  test.each<StoreFault>(['applied', 'late-before-claim'])('is delivered with its retry (%s)', async (fault) => {
    const world = await unsettled(fault, supplier, doubtful);
    await world.runToEnd(doubtful(Number.MAX_SAFE_INTEGER));
    expect(typesSent(world)).toEqual(['BEFORE', 'DOUBTFUL']);
  });

  test('is delivered once a command claims the ledger again, also one that writes nothing', async () => {
    const world = await unsettled('late-before-claim', supplier, doubtful);
    expect(await codeOf(world.run(createMaster()))).not.toBe('carried out');
    await world.quiet();
    expect(typesSent(world)).toEqual(['BEFORE', 'DOUBTFUL']);
  });

  test('is not delivered if it does not land', async () => {
    const world = await unsettled('lost', supplier, doubtful);
    await world.clock.advance(2 * second);
    await world.runToEnd(append({ eventType: 'NEXT' }));
    expect(typesSent(world)).toEqual(['BEFORE', 'NEXT']);
  });

  test.each<StoreFault>(['applied', 'late-before-claim'])(
    'a grant is delivered to its delegate too (%s)',
    async (fault) => {
      const granting = (deadline: number) => grant({ access: 'read', commandKeys: [commandKey('k')], deadline });
      const world = await unsettled(fault, delegate, granting);
      await world.runToEnd(granting(Number.MAX_SAFE_INTEGER));
      expect(typesSent(world)).toEqual(['MASTER_DELEGATION_GRANTED']);
    },
  );
});
