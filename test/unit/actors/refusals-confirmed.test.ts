import { describe, expect, test } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import { Fenced, OutcomeUnknown } from '../../../src/store/ledger-store.ts';
import { settled } from '../../support/clock.ts';
import {
  append,
  closeLedger,
  commandKey,
  delegate,
  grant,
  ledgerId,
  revoke,
  stranger,
} from '../../support/commands.ts';
import { faultyLedgerStore, type StoreFault, scriptedFaults } from '../../support/store-faults.ts';
import { twoNodes } from '../../support/two-nodes.ts';
import { codeOf, codesOf, faultsOf, openOrder, rig, startMs } from '../../support/world.ts';

describe('two owners of one ledger', () => {
  test('the one whose claim was taken claims again, decides again, and writes nothing twice', async () => {
    const { actor, other, meter, log } = await twoNodes();
    await other.submit(append({ payload: '{"by":"other"}' }));
    const outcomes = await Promise.all(['1', '2'].map((by) => actor.submit(append({ payload: `{"by":"${by}"}` }))));
    expect(outcomes.map(({ event }) => event.seq)).toEqual([4, 5]);
    expect(meter.claims).toEqual(['fenced']);
    const events = await log();
    expect(events.slice(3).map(({ payload }) => payload)).toEqual(['{"by":"other"}', '{"by":"1"}', '{"by":"2"}']);
    expect(faultsOf(events)).toEqual([]);
  });

  test('alternately, many times: both write, and there is one chain', async () => {
    const { actor, other, clock, log } = await twoNodes();
    const all: Promise<unknown>[] = [];
    let done = false;
    for (let round = 0; round < 30; round++) all.push(actor.submit(append()), other.submit(append()));
    void Promise.allSettled(all).then(() => {
      done = true;
    });
    for (let step = 0; step < 200 && !done; step++) await clock.advance(50);
    expect((await Promise.allSettled(all)).filter(({ status }) => status === 'rejected')).toEqual([]);
    expect(await log()).toHaveLength(3 + 60);
    expect(faultsOf(await log())).toEqual([]);
  });

  test('what was decided against old grants is decided anew: a revocation elsewhere shuts out', async () => {
    const { actor, other, log } = await twoNodes();
    await actor.submit(grant());
    await other.submit(revoke());
    expect(await codeOf(actor.submit(append({ actorId: delegate })))).toBe('not_found');
    expect((await log()).map(({ eventType }) => eventType)).not.toContain('SHIPMENT_DISPATCHED');
  });
});

describe('a refusal is an answer too', () => {
  test('it is given only where claim and head still stand: granted elsewhere meanwhile, it is carried out', async () => {
    const { actor, other, meter } = await twoNodes();
    await other.submit(grant());
    const { event } = await actor.submit(append({ actorId: delegate }));
    expect(event.actorId).toBe(delegate);
    expect(meter.claims).toEqual(['fenced']);
  });

  test('between the decision and the confirmation: the same', async () => {
    const { actor, other, memory, replaced } = await twoNodes();
    let asked = 0;
    replaced.stands = async (claim, head) => {
      asked++;
      if (asked === 1) await other.submit(grant());
      return memory.stands(claim, head);
    };
    expect(await codeOf(actor.submit(append({ actorId: delegate })))).toBe('carried out');
    expect(asked).toBe(1);
  });

  test('where they stand it is confirmed by one read, begun after the command came', async () => {
    const { actor, memory, replaced, meter } = await twoNodes();
    const heads: (number | undefined)[] = [];
    replaced.stands = (claim, head) => {
      heads.push(head?.seq);
      return memory.stands(claim, head);
    };
    expect(await codeOf(actor.submit(append({ actorId: stranger })))).toBe('not_found');
    expect(await codeOf(actor.submit(append({ actorId: stranger })))).toBe('not_found');
    expect(heads).toEqual([2, 2]);
    expect(meter.claims).toEqual([]);
  });

  test('where that cannot be read it is not given', async () => {
    const { actor, replaced } = await twoNodes();
    replaced.stands = async () => {
      throw new LedgerError('unavailable', 'The store does not answer.');
    };
    expect(await codeOf(actor.submit(append({ actorId: stranger })))).toBe('unavailable');
  });

  test('beside something written it is confirmed by the write, and fenced with it', async () => {
    const { actor, other, replaced } = await twoNodes();
    replaced.stands = async () => {
      throw new Error('asked');
    };
    const both = () => Promise.all([append(), append({ actorId: delegate })].map((one) => codeOf(actor.submit(one))));
    expect(await both()).toEqual(['carried out', 'not_found']);
    await other.submit(grant());
    expect(await both()).toEqual(['carried out', 'carried out']);
  });
});

/** One node over a store that fails as scripted. */
async function faulty() {
  const faults = scriptedFaults();
  let lateOutcomes: readonly string[] = [];
  const world = rig({
    wrap: (memory) => {
      const store = faultyLedgerStore(memory, faults.choose);
      lateOutcomes = store.lateOutcomes;
      return store;
    },
  });
  const actor = world.newActor();
  await openOrder(actor);
  world.meter.claims.length = 0;
  world.meter.batches.length = 0;
  return { ...world, actor, fail: faults.fail, late: () => lateOutcomes };
}

describe('an append of which nobody knows whether it landed', () => {
  const cases: [StoreFault, string, string[]][] = [
    ['applied', 'written', []],
    ['lost', 'not_written', []],
    ['late', 'not_written', ['fenced']],
    ['late-before-claim', 'written', ['landed']],
  ];

  test.each(cases)('%s: it is settled by a new claim, and each command lands once', async (fault, resolution, late) => {
    const { actor, fail, meter, log, late: outcomes } = await faulty();
    fail('append', fault);
    const results = await Promise.all([
      codeOf(actor.submit(append({ payload: '{"n":1}' }))),
      codeOf(actor.submit(append({ actorId: stranger }))),
      codeOf(actor.submit(append({ payload: '{"n":2}' }))),
    ]);
    expect(results).toEqual(['carried out', 'not_found', 'carried out']);
    expect(meter.unknown).toEqual([resolution]);
    expect(meter.claims).toEqual(['unknown_outcome']);
    expect(outcomes()).toEqual(late);
    const events = await log();
    expect(events.slice(3).map(({ payload }) => payload)).toEqual(['{"n":1}', '{"n":2}']);
    expect(faultsOf(events)).toEqual([]);
    expect((await actor.submit(append())).event.seq).toBe(5);
    expect(faultsOf(await log())).toEqual([]);
  });

  test.each(cases)('%s: a fault of the claim that settles it only takes longer', async (fault) => {
    const { actor, fail, clock, meter, log } = await faulty();
    fail('append', fault);
    fail('claim', 'unavailable', 'applied', 'lost');
    const outcome = codeOf(actor.submit(append({ deadline: startMs + 10_000 })));
    await clock.advance(1_000);
    expect(await outcome).toBe('carried out');
    expect(meter.unknown).toHaveLength(1);
    expect(await log()).toHaveLength(4);
    expect(faultsOf(await log())).toEqual([]);
  });

  test('until it is settled nothing else is written', async () => {
    const { actor, fail, clock, log } = await faulty();
    fail('append', 'applied');
    fail('claim', 'unavailable', 'unavailable');
    const first = codeOf(actor.submit(append({ payload: '{"n":1}' })));
    await settled();
    const second = codeOf(actor.submit(append({ payload: '{"n":2}' })));
    await settled();
    expect((await log()).length).toBe(4);
    await clock.advance(1_000);
    expect(await Promise.all([first, second])).toEqual(['carried out', 'carried out']);
    expect((await log()).slice(3).map(({ payload }) => payload)).toEqual(['{"n":1}', '{"n":2}']);
  });

  test('past the deadline it is outcome_unknown, the actor stops, and the retry with its key finds the outcome', async () => {
    for (const [fault, found] of [
      ['applied', true],
      ['lost', false],
    ] as const) {
      const world = await faulty();
      const { actor, fail, clock, log } = world;
      fail('append', fault);
      fail('claim', ...Array<StoreFault>(400).fill('unavailable'));
      const command = append({ commandKeys: [commandKey('k1')], requestId: 'a-call', deadline: startMs + 10_000 });
      const outcome = codeOf(actor.submit(command));
      const behind = codeOf(actor.submit(append({ requestId: 'a-call', deadline: startMs + 60_000 })));
      await settled();
      const waiting = codeOf(actor.submit(append({ deadline: startMs + 60_000 })));
      await clock.advance(61_000);
      expect([await outcome, await behind, await waiting]).toEqual([
        'outcome_unknown',
        'outcome_unknown',
        'unavailable',
      ]);
      expect(actor.stopped).toBe(true);
      expect(world.meter.unknown).toEqual(['unsettled']);
      // Why the store did not confirm it, and why the actor could not find out.
      const errors = [expect.any(OutcomeUnknown), expect.objectContaining({ code: 'unavailable' })];
      const cause = expect.objectContaining({ errors });
      expect(world.meter.doubts).toEqual([{ ledgerId, seq: 3, events: 2, requestIds: ['a-call'], cause }]);
      const healthy = rig({ clock, data: world.data });
      const again = await healthy.newActor().submit({ ...command, deadline: clock.now() + 1 });
      expect(again.replayed).toBe(found);
      expect((await log()).filter(({ commands }) => commands.length > 0)).toHaveLength(1);
    }
  });

  test.each([
    ['written', ['written-call'], 'applied'],
    ['not_written', ['written-call'], 'lost'],
    ['unsettled', ['written-call', 'refused-call'], 'lost'],
  ] as const)('a batch found %s is reported with the calls that this is true of: %s', async (found, calls, fault) => {
    const { actor, fail, meter } = await faulty();
    const before = append({ commandKeys: [commandKey('before')], requestId: 'first-call' });
    await actor.submit(before);
    fail('append', fault);
    if (found === 'unsettled') fail('claim', 'stopped');
    const outcomes = [
      append({ requestId: 'written-call' }),
      append({ requestId: 'refused-call', actorId: stranger }),
      { ...before, requestId: 'replayed-call' },
    ].map((command) => codeOf(actor.submit(command)));
    const answered = found === 'unsettled' ? ['outcome_unknown', 'outcome_unknown'] : ['carried out', 'not_found'];
    expect(await Promise.all(outcomes)).toEqual([...answered, 'carried out']);
    expect(meter.unknown).toEqual([found]);
    expect(meter.doubts.map(({ requestIds }) => requestIds)).toEqual([calls]);
  });

  test('where another node settles it first, by a claim of its own, both tell the same', async () => {
    const { actor, fail, clock, data, log } = await faulty();
    fail('append', 'applied');
    fail('claim', 'unavailable');
    const command = append({ commandKeys: [commandKey('k1')] });
    const first = actor.submit(command);
    await settled();
    const elsewhere = await rig({ clock, data }).newActor().submit(command);
    await clock.advance(1_000);
    expect(elsewhere.replayed).toBe(true);
    expect((await first).event.id).toBe(elsewhere.event.id);
    expect(await log()).toHaveLength(4);
  });

  test('where another node has gone on behind it, so does this one, masters included', async () => {
    const { actor, fail, clock, data, log } = await faulty();
    fail('append', 'applied');
    fail('claim', 'unavailable');
    const first = codeOf(actor.submit(append()));
    await settled();
    await rig({ clock, data }).newActor().submit(append());
    await clock.advance(1_000);
    expect(await first).toBe('carried out');
    expect((await actor.submit(append())).event.master?.seq).toBe(3);
    expect(faultsOf(await log())).toEqual([]);
  });

  test('an error that no store may throw says nothing about the write either', async () => {
    const { replaced, actor, memory, newActor, log } = await twoNodes();
    replaced.append = async (claim, entries) => {
      await memory.append(claim, entries);
      throw new TypeError('a driver stumbled');
    };
    const command = append({ commandKeys: [commandKey('k1')] });
    expect(await codeOf(actor.submit(command))).toBe('outcome_unknown');
    delete replaced.append;
    expect((await newActor().submit(command)).replayed).toBe(true);
    expect(await log()).toHaveLength(4);
  });
});

describe('an append that was certainly not made', () => {
  test('unavailable is the answer, and the retry writes it once', async () => {
    const { actor, fail, log, ...world } = await faulty();
    fail('append', 'unavailable');
    expect(await codeOf(actor.submit(append()))).toBe('unavailable');
    expect(await log()).toHaveLength(3);
    expect(await codeOf(world.newActor().submit(append()))).toBe('carried out');
    expect(await log()).toHaveLength(4);
  });

  test('fenced without end: unavailable at the deadline, nothing written', async () => {
    const { actor, replaced, clock, log, meter } = await twoNodes();
    replaced.append = async () => {
      throw new Fenced();
    };
    const outcome = codeOf(actor.submit(append({ deadline: startMs + 1_000 })));
    await clock.advance(2_000);
    expect(await outcome).toBe('unavailable');
    // With the waits in between: not one claim after the other.
    expect(meter.claims.length).toBeLessThan(400);
    expect(await log()).toHaveLength(3);
    delete replaced.append;
    expect(await codeOf(actor.submit(append()))).toBe('carried out');
  });

  test('a ledger that cannot be claimed or read: unavailable for everybody, and then it goes on', async () => {
    for (const operation of ['claim', 'read'] as const) {
      const { fail, log, ...world } = await faulty();
      fail(operation, 'unavailable');
      const fresh = world.newActor();
      const codes = await codesOf(fresh, append(), closeLedger());
      expect(codes).toEqual(['unavailable', 'unavailable']);
      expect(await codeOf(world.newActor().submit(append()))).toBe('carried out');
      expect(await log()).toHaveLength(4);
    }
  });
});

describe('what was written is answered, whatever else fails', () => {
  test('a replay whose row cannot be read does not take the others with it', async () => {
    const { actor, memory, replaced, log } = await twoNodes();
    const first = await actor.submit(append({ commandKeys: [commandKey('k1')] }));
    let failing = true;
    replaced.read = async (ledger, from, limit) => {
      if (failing) throw new LedgerError('unavailable', 'The store does not answer.');
      return memory.read(ledger, from, limit);
    };
    const codes = await codesOf(
      actor,
      append({ commandKeys: [commandKey('k1')] }),
      append(),
      append({ actorId: stranger }),
    );
    expect(codes).toEqual(['unavailable', 'carried out', 'not_found']);
    failing = false;
    expect(await actor.submit(append({ commandKeys: [commandKey('k1')] }))).toEqual({
      event: first.event,
      replayed: true,
    });
    expect(await log()).toHaveLength(5);
    expect(first.event.ledgerId).toBe(ledgerId);
  });
});
