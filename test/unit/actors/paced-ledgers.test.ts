import { describe, expect, test } from 'vitest';
import { type BatchNeed, unpaced } from '../../../src/actors/batching/batch-pacing.ts';
import {
  batchBytesMax,
  batchEventsMax,
  batchTickMs,
  claimBackoffMinMs,
  claimRacesBeforeBackoff,
} from '../../../src/actors/bounds.ts';
import { LedgerActor } from '../../../src/actors/ledger/ledger-actor.ts';
import { sharedActorState } from '../../../src/actors/ledger/shared-actor-state.ts';
import { Fenced } from '../../../src/store/ledger-store.ts';
import { settled } from '../../support/clock.ts';
import { append, createMaster, ledgerId, openLedger, uuid } from '../../support/commands.ts';
import { rig, storeWith } from '../../support/world.ts';

const freeMax = 8;
const waitMaxMs = 100;
const quietMs = 60;

describe('ledgers that take turns', () => {
  /** As many ledgers as may be at a turn, whose writes the store keeps hanging until `release`, and one more. */
  async function stuck() {
    const held = Promise.withResolvers<void>();
    let isStuck = false;
    const last = uuid(0x500 + freeMax);
    const world = rig({
      wrap: (memory) =>
        storeWith(memory, {
          append: async (claim, entries) => {
            if (isStuck && claim.ledgerId !== last) await held.promise;
            await memory.append(claim, entries);
          },
        }),
    });
    const directory = world.directory({
      batchPace: { ...unpaced, freeMax, waitMaxMs, quietMs, isSaturated: () => true },
    });
    const ids = Array.from({ length: freeMax + 1 }, (_, at) => uuid(0x500 + at));
    for (const ledgerId of ids) {
      await directory.submit(openLedger({ ledgerId }));
      await directory.submit(createMaster({ ledgerId }));
    }
    isStuck = true;
    const others = ids.slice(0, -1).map((ledgerId) => directory.submit(append({ ledgerId })));
    await settled();
    world.meter.batches.length = 0;
    let count = 0;
    /** Sends so many appends to the one more at once. */
    const send = (appends: number) =>
      Array.from({ length: appends }, () => {
        count += 1;
        return directory.submit(append({ ledgerId: last, payload: `{"n":${count}}` }));
      });
    return { ...world, directory, last, send, others, release: held.resolve };
  }

  test('what comes for a ledger while it waits is one group', async () => {
    const { clock, meter, send, others, release } = await stuck();
    const outcomes = send(2);
    await clock.advance(batchTickMs);
    outcomes.push(...send(3));
    await clock.advance(waitMaxMs - 2 * batchTickMs);
    expect(meter.batches).toEqual([]);
    await clock.advance(batchTickMs);
    await Promise.all(outcomes);
    expect(meter.batches).toEqual([5]);
    release();
    await Promise.all(others);
  });

  test('ledgers whose store hangs keep the others waiting for so long and no longer', async () => {
    const { clock, send, others, release } = await stuck();
    let answered = false;
    const [outcome] = send(1).map((sent) =>
      sent.then(() => {
        answered = true;
      }),
    );
    await clock.advance(waitMaxMs - batchTickMs);
    expect(answered).toBe(false);
    await clock.advance(batchTickMs);
    expect(answered).toBe(true);
    release();
    await Promise.all([outcome, ...others]);
  });

  test('a ledger that is being closed waits no longer, and for none of its turns', async () => {
    const { clock, directory, send, others, release } = await stuck();
    let answered = 0;
    const outcomes = send(2 * batchEventsMax + 1).map((sent) =>
      sent.then(() => {
        answered += 1;
      }),
    );
    await settled();
    const closed = directory[Symbol.asyncDispose]();
    await clock.advance(batchTickMs);
    expect(answered).toBe(outcomes.length);
    release();
    await Promise.all([...outcomes, ...others, closed]);
  });

  test('to be told what is certain nobody waits for a turn', async () => {
    const { directory, last, others, release } = await stuck();
    expect(await directory.readBarrier(last)).toBe(2);
    release();
    await Promise.all(others);
  });
});

describe('what a ledger says of its turns', () => {
  /** A ledger whose turns begin when the test has them begin, and what it says meanwhile. */
  async function heldBack() {
    const { parts, clock } = rig();
    let asked: (() => BatchNeed) | null = null;
    let begin = () => {};
    const pacing = {
      begin: (need: () => BatchNeed) => {
        asked = need;
        return new Promise<void>((resolve) => {
          begin = resolve;
        });
      },
      end: () => {
        asked = null;
      },
    };
    const actor = new LedgerActor(ledgerId, parts, {
      ...sharedActorState(parts.clock, unpaced),
      pacing,
      pace: { ...unpaced, quietMs },
    });
    let count = 0;
    const send = (appends: number, payload = '') => {
      for (let at = 0; at < appends; at += 1) {
        count += 1;
        void actor.submit(append({ payload: JSON.stringify({ n: count, payload }) }));
      }
    };
    const takeTurn = async (): Promise<void> => {
      begin();
      await settled();
    };
    void actor.submit(openLedger());
    void actor.submit(createMaster());
    await settled();
    await takeTurn();
    return { actor, clock, send, takeTurn, need: () => asked?.() ?? null };
  }

  test('it needs more as long as more comes, and for a while behind the last that came', async () => {
    const { clock, send, takeTurn, need } = await heldBack();
    send(1);
    await settled();
    expect(need()).toBe('more');
    for (let more = 0; more < 5; more += 1) {
      clock.jump(quietMs - 1);
      expect(need()).toBe('more');
      send(1);
      expect(need()).toBe('more');
    }
    clock.jump(quietMs);
    expect(need()).toBe('nothing');
    await takeTurn();
    expect(need()).toBeNull();
    send(1);
    await settled();
    expect(need()).toBe('more');
  });

  test('it needs nothing where a group is full, by events or by bytes', async () => {
    const { send, takeTurn, need } = await heldBack();
    send(batchEventsMax - 1);
    await settled();
    expect(need()).toBe('more');
    send(1);
    expect(need()).toBe('nothing');
    await takeTurn();
    send(3, 'x'.repeat(batchBytesMax / 4));
    await settled();
    expect(need()).toBe('more');
    send(1, 'x'.repeat(batchBytesMax / 4));
    expect(need()).toBe('nothing');
  });

  test('it makes haste once somebody asks what is certain', async () => {
    const { actor, send, takeTurn, need } = await heldBack();
    send(1);
    await settled();
    const asked = actor.readBarrier();
    expect(need()).toBe('haste');
    await takeTurn();
    expect(await asked).toBe(3);
  });

  test('it makes haste once it is being closed', async () => {
    const { actor, send, takeTurn, need } = await heldBack();
    send(1);
    await settled();
    const closed = actor.close();
    expect(need()).toBe('haste');
    await takeTurn();
    await closed;
  });
});

test('a turn that rests behind lost claims is not counted meanwhile, and goes on at once', async () => {
  let fencedLeft = claimRacesBeforeBackoff + 1;
  const world = rig({
    wrap: (memory) =>
      storeWith(memory, {
        append: async (claim, entries) => {
          if (fencedLeft > 0) {
            fencedLeft -= 1;
            throw new Fenced();
          }
          await memory.append(claim, entries);
        },
      }),
  });
  const counted: string[] = [];
  const pacing = {
    begin: (need: () => BatchNeed) => {
      counted.push(need());
      return undefined;
    },
    end: () => {
      counted.push('end');
    },
  };
  const node = { ...sharedActorState(world.clock, unpaced), pacing, pace: { ...unpaced, quietMs } };
  const actor = new LedgerActor(ledgerId, world.parts, node);
  const opened = actor.submit(openLedger());
  await settled();
  expect(counted).toEqual(['more', 'end']);
  await world.clock.advance(2 * claimBackoffMinMs);
  await opened;
  expect(counted).toEqual(['more', 'end', 'haste', 'end']);
});
