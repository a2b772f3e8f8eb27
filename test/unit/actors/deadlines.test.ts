import { describe, expect, test } from 'vitest';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import { settled } from '../../support/clock.ts';
import { append, commandKey, openLedger, stranger } from '../../support/commands.ts';
import { beforeCalls, codeOf, faultsOf, openOrder, rig, startMs, storeWith } from '../../support/world.ts';

/** An open ledger over a store whose methods wait at a gate once the test says so. */
async function gated(method: 'append' | 'claim' | 'findCommands' | 'readScope', warm = true) {
  const transport = Promise.withResolvers<void>();
  let shut = false;
  let calls = 0;
  const world = rig({
    wrap: (memory) => {
      const waiting = async (...args: unknown[]) => {
        if (shut) {
          calls++;
          await transport.promise;
        }
        return (memory[method] as (...given: unknown[]) => unknown)(...args);
      };
      return storeWith(memory, { [method]: waiting } as Partial<LedgerStore>);
    },
  });
  const first = world.newActor();
  await openOrder(first);
  const actor = warm ? first : world.newActor();
  if (warm) await actor.submit(append());
  const written = (await world.log()).length;
  shut = true;
  return {
    ...world,
    actor,
    open: () => transport.resolve(),
    calls: () => calls,
    written: async () => (await world.log()).length - written,
  };
}

const inOneSecond = startMs + 1_000;
const inOneMinute = startMs + 60_000;

describe('a command whose time is up before it was sent', () => {
  test('on arrival: unavailable, and the store is not even asked', async () => {
    const { newActor, meter, log } = rig();
    expect(await codeOf(newActor().submit(openLedger({ deadline: startMs })))).toBe('unavailable');
    expect(meter.claims).toEqual([]);
    expect(await log()).toEqual([]);
  });

  test.each([
    ['while the ledger is claimed', 'claim', false],
    ['while its command keys are looked up', 'findCommands', true],
    ['while its master is loaded', 'readScope', false],
  ] as const)('%s: unavailable at once, never written, and the others are', async (_, method, warm) => {
    const { actor, clock, open, calls, written } = await gated(method, warm);
    const late = codeOf(actor.submit(append({ commandKeys: [commandKey('late')], deadline: inOneSecond })));
    const other = codeOf(actor.submit(append({ commandKeys: [commandKey('other')], deadline: inOneMinute })));
    await settled();
    expect(calls()).toBe(1);
    await clock.advance(1_100);
    expect(await late).toBe('unavailable');
    open();
    expect(await other).toBe('carried out');
    expect(await written()).toBe(1);
  });

  test.each([
    ['', 0],
    [', though the clock is set back afterwards', -10_000],
  ])('while another batch is in flight: unavailable at once, never written%s', async (_, jumpMs) => {
    const { actor, clock, open, written } = await gated('append');
    const first = codeOf(actor.submit(append({ deadline: inOneMinute })));
    await settled();
    const late = codeOf(actor.submit(append({ deadline: inOneSecond })));
    await clock.advance(1_100);
    expect(await late).toBe('unavailable');
    clock.jump(jumpMs);
    open();
    expect(await first).toBe('carried out');
    await settled();
    expect(await written()).toBe(1);
  });

  test('the millisecond of the deadline is too late, the one before is not', async () => {
    const { actor, clock, open, written } = await gated('append');
    open();
    clock.jump(999);
    expect(await codeOf(actor.submit(append({ deadline: inOneSecond })))).toBe('carried out');
    clock.jump(1);
    expect(await codeOf(actor.submit(append({ deadline: inOneSecond })))).toBe('unavailable');
    expect(await written()).toBe(1);
  });
});

describe('a command whose time is up while its write is in flight', () => {
  test('gets outcome_unknown; the others get the result of the write', async () => {
    const { actor, clock, open, log, written } = await gated('append');
    // The first command has the last deadline.
    const later = actor.submit(append({ payload: '{"n":1}', deadline: inOneMinute }));
    const hasty = codeOf(
      actor.submit(append({ payload: '{"n":2}', commandKeys: [commandKey('k')], deadline: inOneSecond })),
    );
    const refused = codeOf(actor.submit(append({ actorId: stranger, deadline: inOneMinute })));
    await clock.advance(900);
    expect(clock.timers).toBeGreaterThan(0);
    await clock.advance(200);
    expect(await hasty).toBe('outcome_unknown');
    open();
    const { event } = await later;
    expect(await refused).toBe('not_found');
    expect((await log()).find(({ id }) => id === event.id)?.payload).toBe('{"n":1}');
    expect(await written()).toBe(2);
    expect(faultsOf(await log())).toEqual([]);
    const again = await actor.submit(append({ payload: '{"n":2}', commandKeys: [commandKey('k')] }));
    expect([again.replayed, again.event.payload]).toEqual([true, '{"n":2}']);
  });

  test('a command that is to be refused gets unavailable: it was certainly not written', async () => {
    const { actor, clock, open } = await gated('append');
    const written = codeOf(actor.submit(append({ deadline: inOneMinute })));
    const refused = codeOf(actor.submit(append({ actorId: stranger, deadline: inOneSecond })));
    await clock.advance(1_100);
    expect(await refused).toBe('unavailable');
    open();
    expect(await written).toBe('carried out');
  });

  test('a replay is answered without waiting for the write', async () => {
    const { actor, open, ...world } = await gated('append');
    open();
    const command = append({ commandKeys: [commandKey('k')] });
    const first = await actor.submit(command);
    const transport = Promise.withResolvers<void>();
    const later = rig({
      clock: world.clock,
      data: world.data,
      wrap: (memory) => beforeCalls(memory, { append: () => transport.promise }),
    });
    const elsewhere = later.newActor();
    const writing = elsewhere.submit(append());
    const replay = await elsewhere.submit(command);
    expect(replay).toEqual({ event: first.event, replayed: true });
    transport.resolve();
    expect((await writing).replayed).toBe(false);
  });

  test('with nothing to do no timer is left', async () => {
    const { actor, clock, open } = await gated('append');
    open();
    await actor.submit(append());
    await settled();
    expect(clock.timers).toBe(0);
  });
});
