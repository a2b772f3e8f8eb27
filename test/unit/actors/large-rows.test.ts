import { describe, expect, test } from 'vitest';
import {
  replayPageEvents,
  snapshotEveryEvents,
  snapshotRetryEvents,
  snapshotWhenLeavingEvents,
} from '../../../src/actors/bounds.ts';
import { loadLedger } from '../../../src/actors/ledger/ledger-loading.ts';
import { MasterActor } from '../../../src/actors/ledger/master-actor.ts';
import { SaveQueue } from '../../../src/actors/ledger/save-queue.ts';
import { type SavingParts, SnapshotSaving } from '../../../src/actors/ledger/snapshot-saving.ts';
import { systemClock } from '../../../src/runtime/clock/system-clock.ts';
import { turnCharsMax } from '../../../src/runtime/limits/event-loop-budget.ts';
import type { LedgerStore, Snapshot } from '../../../src/store/ledger-store.ts';
import { charsOf, pageCharsMax } from '../../../src/store/pages.ts';
import { append, createMaster, ledgerId, masterId, openLedger } from '../../support/commands.ts';
import { rig, storeWith } from '../../support/world.ts';

function savingIn(store: LedgerStore): SavingParts {
  return { store, saves: new SaveQueue(systemClock) };
}

/** As JSON.stringify does for a state of more than half a GiB. */
function tooLong(): Snapshot {
  throw new RangeError('Invalid string length');
}

describe('a state that is too large for a snapshot', () => {
  const snapshot = (seq: number): Snapshot => ({ foldVersion: 1, seq, hash: '', state: '{}' });

  function saving() {
    const saved: number[] = [];
    const store = storeWith(rig().memory, {
      saveSnapshot: async (_owner, { seq }) => void saved.push(seq),
    });
    return { saved, saving: new SnapshotSaving(savingIn(store), ledgerId, -1) };
  }

  test('is not saved, and the save does not reject', async () => {
    const { saved, saving: one } = saving();
    await one.saveWhenDue(snapshotEveryEvents, tooLong);
    await one.saveWhenLeaving(snapshotEveryEvents + 1, tooLong);
    expect(saved).toEqual([]);
  });

  test('is tried again later, like a save that the store refused', async () => {
    const { saved, saving: one } = saving();
    await one.saveWhenDue(snapshotEveryEvents, tooLong);
    await one.saveWhenDue(snapshotEveryEvents + 1, () => snapshot(snapshotEveryEvents + 1));
    expect(saved).toEqual([]);
    const leaving = snapshotEveryEvents + snapshotWhenLeavingEvents;
    await one.saveWhenLeaving(leaving, () => snapshot(leaving));
    expect(saved).toEqual([leaving]);
  });
});

test('after two saves that were joined and failed, no later place counts as saved than was stored', async () => {
  const saved: number[] = [];
  const failing = Promise.withResolvers<void>();
  let isFailing = true;
  const store = storeWith(rig().memory, {
    saveSnapshot: async (_owner, { seq }) => {
      if (isFailing) await failing.promise;
      saved.push(seq);
    },
  });
  const parts = savingIn(store);
  const snapshot =
    (seq: number, chars = 2) =>
    () => ({ foldVersion: 1, seq, hash: '', state: 'x'.repeat(chars) });
  // Fills the turn, so that the next ones wait.
  const other = new SnapshotSaving(parts, masterId, -1).saveWhenDue(snapshotEveryEvents, snapshot(0, turnCharsMax));
  const saving = new SnapshotSaving(parts, ledgerId, -1);
  const leaving = snapshotEveryEvents + snapshotWhenLeavingEvents;
  const both = [
    saving.saveWhenDue(snapshotEveryEvents, snapshot(snapshotEveryEvents)),
    saving.saveWhenLeaving(leaving, snapshot(leaving)),
  ];
  failing.reject(new Error('the store is gone'));
  await Promise.all([other, ...both]);
  isFailing = false;
  const next = leaving + snapshotRetryEvents;
  await saving.saveWhenDue(next, snapshot(next));
  expect(saved).toEqual([next]);
});

describe('a replay of large rows', () => {
  /** Rows of 64 KiB, so that a page of replayPageEvents would have 5 MiB. */
  const count = 80;
  const payload = JSON.stringify({ text: 'x'.repeat(64 * 1024) });

  async function largeLedger() {
    const { newActor, memory } = rig();
    const actor = newActor();
    await Promise.all([openLedger(), createMaster()].map((one) => actor.submit(one)));
    for (let done = 0; done < count; done += 1) await actor.submit(append({ payload }));
    const pages: number[] = [];
    const noted = <T extends { readonly row: string }>(page: T[]) => {
      pages.push(charsOf(page));
      return page;
    };
    const store: LedgerStore = storeWith(memory, {
      snapshot: async () => null,
      read: async (...asked) => noted(await memory.read(...asked)),
      readScope: async (...asked) => {
        const found = await memory.readScope(...asked);
        noted(found.entries);
        return found;
      },
    });
    return { store, pages, head: await memory.head(ledgerId) };
  }

  const rowCharsMax = payload.length + 2_048;

  test('reads a ledger and its master a few rows at a time, and to their ends', async () => {
    const { store, pages, head } = await largeLedger();
    expect(count).toBeLessThan(replayPageEvents);
    const { state } = await loadLedger(store, ledgerId, head);
    expect(state.seq).toBe(head?.seq);
    const master = await MasterActor.load(savingIn(store), ledgerId, masterId);
    expect(master.working?.seq).toBe(head?.seq);
    expect(pages.length).toBeGreaterThan(10);
    expect(Math.max(...pages)).toBeLessThan(pageCharsMax + rowCharsMax);
  });
});
