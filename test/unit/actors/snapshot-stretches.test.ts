import { describe, expect, onTestFinished, test } from 'vitest';
import { snapshotEveryEvents, snapshotsLeavingMaxMs, snapshotWhenLeavingEvents } from '../../../src/actors/bounds.ts';
import type { LedgerActor } from '../../../src/actors/ledger/ledger-actor.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { append, createMaster, grant, ledgerId, openLedger, uuid } from '../../support/commands.ts';
import { rig, startMs, storeWith } from '../../support/world.ts';

/** A turn of the event loop may take as much as this of snapshots: two of these masters, and the ledger. */
const charsInTurnMax = 350_000;
const masters = Array.from({ length: 8 }, (_, index) => uuid(0x100 + index));

/** A ledger whose masters have a state of some 150,000 characters each. `saving` is called by each save. */
async function ledgerOfLargeMasters(saving: (clock: ManualClock) => unknown = () => {}) {
  const clock = new ManualClock(startMs);
  const saved: string[] = [];
  /** By turn of the event loop. */
  const chars = new Map<number, number>();
  let turn = 0;
  const count = () => {
    turn += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  onTestFinished(() => clearImmediate(counting));
  const world = rig({
    clock,
    wrap: (memory) =>
      storeWith(memory, {
        saveSnapshot: async (owner, snapshot) => {
          await saving(clock);
          saved.push(owner);
          chars.set(turn, (chars.get(turn) ?? 0) + snapshot.state.length);
          await memory.saveSnapshot(owner, snapshot);
        },
      }),
  });
  const actor = world.newActor();
  await actor.submit(openLedger());
  await Promise.all(masters.map((masterId) => actor.submit(createMaster({ masterId }))));
  await Promise.all(masters.map((masterId) => actor.submit(grant({ masterId, role: 'x'.repeat(150_000) }))));
  return { clock, actor, saved, charsMost: () => Math.max(...chars.values()) };
}

/** Adds events to all masters in turn, so that all of them are in each batch. */
async function grow(actor: LedgerActor, events: number): Promise<void> {
  for (let count = 0; count < events; count += 8) {
    const round = Array.from({ length: Math.min(8, events - count) }, () => masters);
    await Promise.all(round.flat().map((masterId) => actor.submit(append({ masterId }))));
  }
}

async function untilSaved(saved: readonly string[]): Promise<void> {
  for (let turn = 0; turn < 100 && !masters.every((id) => saved.includes(id)); turn += 1) await settled();
}

describe('snapshots of large states', () => {
  test('that are due in one batch are made in several turns of the event loop', async () => {
    const { actor, saved, charsMost } = await ledgerOfLargeMasters();
    await grow(actor, snapshotEveryEvents - 3);
    expect(new Set(saved)).toEqual(new Set([ledgerId]));
    await grow(actor, 1);
    await untilSaved(saved);
    expect(saved.filter((owner) => owner !== ledgerId)).toEqual(masters);
    expect(charsMost()).toBeLessThan(charsInTurnMax);
  });

  test('of a ledger that leaves memory are made in several turns of the event loop', async () => {
    const { actor, saved, charsMost } = await ledgerOfLargeMasters();
    await grow(actor, snapshotWhenLeavingEvents);
    await actor.close();
    expect(new Set(saved)).toEqual(new Set([ledgerId, ...masters]));
    expect(charsMost()).toBeLessThan(charsInTurnMax);
  });

  test('that cannot be begun in time are left out, so that a hand-over does not wait for them', async () => {
    const { actor, saved } = await ledgerOfLargeMasters((clock) => clock.jump(snapshotsLeavingMaxMs / 4));
    await grow(actor, snapshotWhenLeavingEvents);
    saved.length = 0;
    await actor.close();
    expect(saved.length).toBeGreaterThan(2);
    expect(saved.length).toBeLessThan(7);
  });

  test('that a store does not answer hold up a hand-over no longer than its time limit', async () => {
    let answers = true;
    const { clock, actor } = await ledgerOfLargeMasters(() => (answers ? undefined : new Promise(() => {})));
    await grow(actor, snapshotWhenLeavingEvents);
    answers = false;
    let closed = false;
    void actor.close().then(() => {
      closed = true;
    });
    await clock.advance(snapshotsLeavingMaxMs - 1);
    expect(closed).toBe(false);
    await clock.advance(1);
    await settled();
    expect(closed).toBe(true);
  });
});
