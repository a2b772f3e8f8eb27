import { expect, test } from 'vitest';
import { snapshotCharsAtStoreMax } from '../../../src/actors/bounds.ts';
import { SaveQueue } from '../../../src/actors/ledger/save-queue.ts';
import { turnCharsMax } from '../../../src/runtime/limits/event-loop-budget.ts';
import type { Snapshot } from '../../../src/store/ledger-store.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { startMs } from '../../support/world.ts';

/** A queue whose saves note what they made and stored. The store answers when the test calls `answer`. */
function queue() {
  const clock = new ManualClock(startMs);
  const saves = new SaveQueue(clock);
  const made: string[] = [];
  const atStore: PromiseWithResolvers<void>[] = [];
  const save = (owner: string, chars = turnCharsMax, beginBefore = Number.POSITIVE_INFINITY, name = owner) =>
    saves.run(owner, {
      snapshot: (): Snapshot => {
        made.push(name);
        return { foldVersion: 1, seq: 0, hash: '', state: 'x'.repeat(chars) };
      },
      store: () => {
        const answer = Promise.withResolvers<void>();
        atStore.push(answer);
        return answer.promise;
      },
      beginBefore,
    });
  return { clock, made, atStore, save };
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await settled();
}

test('a save begins at once, and large ones behind it in turns of their own', async () => {
  const { made, save } = queue();
  for (const owner of ['a', 'b', 'c']) void save(owner);
  expect(made).toEqual(['a']);
  await settled();
  expect(made.length).toBeLessThan(3);
  await turns(3);
  expect(made).toEqual(['a', 'b', 'c']);
});

test('small saves share a turn', () => {
  const { made, save } = queue();
  for (const owner of ['a', 'b', 'c']) void save(owner, 500);
  expect(made).toEqual(['a', 'b', 'c']);
});

test('only so much is at the store at a time, and the next save begins when one has ended', async () => {
  const { made, atStore, save } = queue();
  const all = Array.from({ length: 40 }, (_, index) => save(String(index)));
  await turns(60);
  const begun = made.length;
  expect(begun * turnCharsMax).toBeGreaterThan(snapshotCharsAtStoreMax / 2);
  expect(begun * turnCharsMax).toBeLessThanOrEqual(snapshotCharsAtStoreMax + turnCharsMax);
  atStore[0]?.resolve();
  await turns(3);
  expect(made).toHaveLength(begun + 1);
  for (let index = 1; index < all.length; index += 1) {
    atStore[index]?.resolve();
    await turns(2);
  }
  await Promise.all(all);
  expect(made).toHaveLength(40);
});

test('of an owner whose save waits the newest state is saved, once', async () => {
  const { made, atStore, save } = queue();
  void save('first');
  const both = [
    save('owner', 500, Number.POSITIVE_INFINITY, 'older'),
    save('owner', 500, Number.POSITIVE_INFINITY, 'newer'),
  ];
  await turns(2);
  for (const { resolve } of atStore) resolve();
  await Promise.all(both);
  expect(made).toEqual(['first', 'newer']);
});

test('a save that does not begin in time is rejected and not made, and those behind it are', async () => {
  const { clock, made, atStore, save } = queue();
  void save('first');
  const late = save('late', 500, startMs + 1_000);
  const next = save('next', 500);
  clock.jump(1_000);
  await expect(late).rejects.toThrow('in time');
  await settled();
  for (const { resolve } of atStore) resolve();
  await next;
  expect(made).toEqual(['first', 'next']);
});

test.each(['comes after', 'comes before'])(
  'a save with a time limit that %s one without limit has none',
  async (order) => {
    const { clock, made, atStore, save } = queue();
    void save('first');
    const limits = [Number.POSITIVE_INFINITY, startMs + 1_000];
    if (order === 'comes before') limits.reverse();
    const both = limits.map((limit) => save('owner', 500, limit));
    clock.jump(1_000);
    await settled();
    for (const { resolve } of atStore) resolve();
    await Promise.all(both);
    expect(made).toEqual(['first', 'owner']);
  },
);

test('a save that fails rejects, and makes room for the next one', async () => {
  const { made, atStore, save } = queue();
  const failing = Array.from({ length: 20 }, (_, index) => save(String(index)));
  void Promise.allSettled(failing);
  await turns(40);
  const begun = made.length;
  expect(begun).toBeLessThan(20);
  atStore[0]?.reject(new Error('the store does not answer'));
  await expect(failing[0]).rejects.toThrow('does not answer');
  await turns(3);
  expect(made).toHaveLength(begun + 1);
});
