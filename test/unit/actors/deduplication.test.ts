import { describe, expect, test } from 'vitest';
import { passivateAfterMs } from '../../../src/actors/bounds.ts';
import type { LedgerActor } from '../../../src/actors/ledger/ledger-actor.ts';
import { settled } from '../../support/clock.ts';
import {
  append,
  closeLedger,
  closeMaster,
  commandKey,
  createMaster,
  grant,
  openLedger,
  revoke,
  signature,
  stranger,
  supplier,
} from '../../support/commands.ts';
import { faultyLedgerStore, type StoreFault, scriptedFaults } from '../../support/store-faults.ts';
import { beforeCalls, codeOf, codesOf, openOrder, type Rig, rig } from '../../support/world.ts';

async function opened(): Promise<Rig & { readonly actor: LedgerActor }> {
  const world = rig();
  const actor = world.newActor();
  await openOrder(actor);
  return { ...world, actor };
}

const dayMs = 24 * 60 * 60 * 1_000;

describe('the same command again', () => {
  test.each([
    ['append', append({ commandKeys: [commandKey('k')] })],
    ['grant', grant({ commandKeys: [commandKey('k')] })],
    ['closing of a master', closeMaster({ commandKeys: [commandKey('k')] })],
    ['closing of the ledger', closeLedger({ commandKeys: [commandKey('k')] })],
  ] as const)('%s: the first event is the answer, whatever became of the ledger since', async (_, command) => {
    const { actor, log, ...world } = await opened();
    const first = await actor.submit(command);
    await codeOf(actor.submit(closeLedger()));
    await codeOf(actor.submit(revoke()));
    const count = (await log()).length;
    for (const one of [actor, world.newActor()])
      expect(await one.submit(command)).toEqual({ event: first.event, replayed: true });
    expect(await log()).toHaveLength(count);
  });

  test('with another fingerprint: the key was used for another call', async () => {
    const { actor, log } = await opened();
    await actor.submit(append({ commandKeys: [commandKey('k')] }));
    expect(await codeOf(actor.submit(append({ commandKeys: [commandKey('k', 'other')] })))).toBe(
      'idempotency_key_reused',
    );
    expect(await log()).toHaveLength(4);
  });

  test('a refusal is not remembered: the retry is decided anew', async () => {
    const { actor } = await opened();
    const command = append({ actorId: stranger, commandKeys: [commandKey('k')] });
    expect(await codeOf(actor.submit(command))).toBe('not_found');
    await actor.submit(grant({ delegateActorId: stranger }));
    expect((await actor.submit(command)).replayed).toBe(false);
  });

  test('a command key is forgotten a day later, a permanent one never', async () => {
    const { actor, clock, log } = await opened();
    const signed = commandKey('signed', 'digest', true);
    await actor.submit(append({ commandKeys: [commandKey('k')] }));
    await actor.submit(append({ commandKeys: [commandKey('k2'), signed] }));
    clock.jump(dayMs + 1);
    expect((await actor.submit(append({ commandKeys: [commandKey('k')] }))).replayed).toBe(false);
    expect((await actor.submit(append({ commandKeys: [commandKey('another'), signed] }))).replayed).toBe(true);
    expect((await actor.submit(append({ commandKeys: [signed] }))).replayed).toBe(true);
    expect(await log()).toHaveLength(6);
  });

  test('each of two command keys finds the event, and another fingerprint under either is a key used twice', async () => {
    const { actor } = await opened();
    const commandKeys = [commandKey('k'), commandKey('s', 'digest', true)];
    await actor.submit(append({ commandKeys }));
    expect((await actor.submit(append({ commandKeys: [commandKey('k')] }))).replayed).toBe(true);
    expect(
      (await actor.submit(append({ commandKeys: [commandKey('new'), commandKey('s', 'digest', true)] }))).replayed,
    ).toBe(true);
    const reused = [commandKey('k', 'other'), commandKey('s', 'digest', true)];
    expect(await codeOf(actor.submit(append({ commandKeys: reused })))).toBe('idempotency_key_reused');
    expect(await codeOf(actor.submit(append({ commandKeys: reused.toReversed() })))).toBe('idempotency_key_reused');
  });

  test('a replay asks nothing of the key any more that signed the first time', async () => {
    const { actor, keys, clock } = await opened();
    keys.enrol(supplier, 'kid');
    const command = append({ commandKeys: [commandKey('k')], signature: signature('kid'), signatureRule: 'if_keyed' });
    await actor.submit(command);
    keys.enrol(supplier, 'kid', { revokedAt: new Date(clock.now()).toISOString() });
    expect((await actor.submit(command)).replayed).toBe(true);
    expect(await codeOf(actor.submit({ ...command, commandKeys: [] }))).toBe('signing_key_revoked');
  });
});

describe('the same command while the first one runs', () => {
  test('is refused as in progress; a hundred at once write one event', async () => {
    const { actor, log } = await opened();
    const command = append({ commandKeys: [commandKey('k')] });
    const codes = await Promise.all(Array.from({ length: 100 }, () => codeOf(actor.submit(command))));
    expect(codes.filter((code) => code === 'carried out')).toHaveLength(1);
    expect(codes.filter((code) => code === 'idempotency_in_progress')).toHaveLength(99);
    expect(await log()).toHaveLength(4);
    expect((await actor.submit(command)).replayed).toBe(true);
  });

  test('one that was sent before joins it', async () => {
    const { actor, log } = await opened();
    const command = append({ commandKeys: [commandKey('k')] });
    const [first, again] = await Promise.all([actor.submit(command), actor.submit({ ...command, resubmitted: true })]);
    expect(again).toEqual(first);
    expect(await log()).toHaveLength(4);
  });

  test('joining shares a refusal too', async () => {
    const { actor } = await opened();
    const command = append({ actorId: stranger, commandKeys: [commandKey('k')] });
    const codes = [command, { ...command, resubmitted: true }].map((one) => codeOf(actor.submit(one)));
    expect(await Promise.all(codes)).toEqual(['not_found', 'not_found']);
  });

  test('another call under the same key is refused; a resubmitted one learns only that a call with this key is in progress', async () => {
    const { actor } = await opened();
    const other = append({ commandKeys: [commandKey('k', 'other')] });
    const codes = [append({ commandKeys: [commandKey('k')] }), other, { ...other, resubmitted: true }].map((one) =>
      codeOf(actor.submit(one)),
    );
    expect(await Promise.all(codes)).toEqual(['carried out', 'idempotency_key_reused', 'idempotency_in_progress']);
    expect(await codeOf(actor.submit({ ...other, resubmitted: true }))).toBe('idempotency_key_reused');
  });

  test('a command is in flight under each of its two command keys', async () => {
    const { actor, log } = await opened();
    const signed = commandKey('s', 'digest', true);
    const commands = [
      append({ commandKeys: [commandKey('k1'), signed] }),
      append({ commandKeys: [commandKey('k2'), signed] }),
    ];
    const codes = await codesOf(actor, ...commands);
    expect(codes).toEqual(['carried out', 'idempotency_in_progress']);
    expect(await log()).toHaveLength(4);
  });

  test('the same on two nodes at once: one event', async () => {
    const { actor, data, clock, log } = await opened();
    const elsewhere = rig({ clock, data }).newActor();
    await elsewhere.submit(append());
    const command = append({ commandKeys: [commandKey('k')] });
    const both = [actor, elsewhere].map((one) => one.submit(command));
    for (let step = 0; step < 20; step++) await clock.advance(50);
    const outcomes = await Promise.all(both);
    expect(outcomes.map(({ replayed }) => replayed).toSorted()).toEqual([false, true]);
    expect(new Set(outcomes.map(({ event }) => event.id)).size).toBe(1);
    await settled();
    expect(await log()).toHaveLength(5);
  });
});

describe('the store decides whether a key is new', () => {
  test('it is asked once for all keys of a batch', async () => {
    const asked: string[][] = [];
    const { newActor } = rig({
      wrap: (memory) =>
        beforeCalls(memory, {
          findCommands: (_ledgerId, keys) => asked.push(keys.map(({ id }) => id)),
        }),
    });
    const actor = newActor();
    await openOrder(actor);
    await Promise.all(['a', 'b', 'c'].map((id) => actor.submit(append({ commandKeys: [commandKey(id)] }))));
    expect(asked).toEqual([['a', 'b', 'c']]);
  });

  test.for<StoreFault>(['applied', 'lost', 'late', 'late-before-claim'])(
    'it finds the key of an append that was %s, also for a new actor of the node',
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

  test('it finds the key of a command that another node wrote to a ledger of this one', async () => {
    const { newActor, meter } = rig();
    const [first, second] = [newActor(), newActor()];
    await first.submit(openLedger());
    await first.submit(createMaster());
    await second.submit(append({ commandKeys: [commandKey('k')] }));
    expect((await first.submit(append({ commandKeys: [commandKey('k')] }))).replayed).toBe(true);
    expect(await codeOf(first.submit(append({ commandKeys: [commandKey('k', 'other')] })))).toBe(
      'idempotency_key_reused',
    );
    expect(meter.fencings).toBe(1);
  });
});
