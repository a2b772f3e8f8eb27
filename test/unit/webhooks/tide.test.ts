import { expect, test } from 'vitest';
import { Tide } from '../../../src/webhooks/tide.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';

function rig(isBusy: boolean) {
  const clock = new ManualClock(0);
  const state = { isBusy };
  const tide = new Tide({ clock, isBusy: () => state.isBusy });
  const memory = new MemoryRecordStore();
  const written: string[] = [];
  const riding = tide.riding(memory);
  const put = (id: string) =>
    void riding.put({ kind: 'k', id, replaces: 'absent', value: '1', lookups: [] }).then(() => written.push(id));
  return { clock, state, tide, riding, written, put };
}

test('while appends are busy, writes go out when one of theirs was committed, together', async () => {
  const { tide, written, put, clock } = rig(true);
  put('a');
  put('b');
  await settled();
  expect(written).toEqual([]);
  tide.committed();
  await settled();
  expect(written).toEqual(['a', 'b']);
  expect(clock.timers).toBe(0);
  put('c');
  await settled();
  expect(written).toEqual(['a', 'b']);
});

test('where no append comes they wait 20 ms and no longer', async () => {
  const { clock, written, put } = rig(true);
  put('a');
  await clock.advance(19);
  expect(written).toEqual([]);
  await clock.advance(1);
  expect(written).toEqual(['a']);
});

test('otherwise they wait for nothing, and reads never do', async () => {
  const { state, written, put, riding, clock } = rig(false);
  put('a');
  await settled();
  expect(written).toEqual(['a']);
  state.isBusy = true;
  expect(await riding.get('k', 'a')).toMatchObject({ value: '1' });
  expect(await riding.find('k', { name: 'n', value: 'v' }, { limit: 1 })).toEqual([]);
  expect(clock.timers).toBe(0);
});
