import { expect, test } from 'vitest';
import { BatchWindow } from '../../../src/actors/batching/batch-window.ts';
import { batchLimits, largestBatchEvents } from '../../../src/actors/bounds.ts';
import { pageCharsMax } from '../../../src/store/pages.ts';
import { nextCommitDates } from '../../../src/webhooks/tail/event-range.ts';
import { append, createMaster, ledgerId, openLedger } from '../../support/commands.ts';
import { rig, storeWith } from '../../support/world.ts';

test('the next commit is found behind the largest commit that a store takes, from its first event on', async () => {
  const world = rig({
    wrap: (memory) =>
      storeWith(memory, {
        append: async (claim, entries) => {
          await memory.append(claim, entries);
          world.clock.jump(1);
        },
      }),
  });
  const { clock, meter, newActor, parts } = world;
  const actor = newActor({ batches: new BatchWindow(clock, batchLimits.commitsTogether) });
  await actor.submit(openLedger());
  await actor.submit(createMaster());
  meter.batches.length = 0;
  await Promise.all(Array.from({ length: 2 * largestBatchEvents }, () => actor.submit(append())));
  expect(meter.batches.slice(0, 2)).toEqual([largestBatchEvents, largestBatchEvents]);

  const log = await world.log();
  const first = log.length - 2 * largestBatchEvents;
  const events = log.slice(0, first + 1);
  const next = nextCommitDates(parts.store, { ledgerId, fromSeq: 1, throughSeq: events.length, events });
  const [event, behind] = [log[first], log[first + largestBatchEvents]];
  if (event === undefined || behind === undefined) throw new Error('the log is shorter than what was written');
  expect(log[first + largestBatchEvents - 1]?.createdAt).toBe(event.createdAt);
  expect(await next(event)).toBe(behind.createdAt);

  // Pages of large rows are short.
  const bounds = new Set<number | undefined>();
  const shortPages = storeWith(parts.store, {
    read: (id, from, limit, charsMax) => {
      bounds.add(charsMax);
      return parts.store.read(id, from, Math.min(limit, 50), charsMax);
    },
  });
  const paged = nextCommitDates(shortPages, { ledgerId, fromSeq: 1, throughSeq: events.length, events });
  expect([await paged(event), bounds]).toEqual([behind.createdAt, new Set([pageCharsMax])]);
});
