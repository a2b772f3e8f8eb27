import { expect, test } from 'vitest';
import { createLog } from '../../../src/runtime/telemetry/log.ts';
import { Pace } from '../../../src/webhooks/pace.ts';
import { TailScan } from '../../../src/webhooks/tail/tail-scan.ts';
import { settled } from '../../support/clock.ts';
import { rig } from '../../support/world.ts';

/** Looks at these ledgers; `look` as given, else nothing happens at one. */
function looking(ids: readonly string[], look: (id: string) => Promise<void> = async () => {}) {
  const looked: string[] = [];
  const { clock } = rig();
  const zero = () => 0;
  const ledgerLook = new TailScan({
    pace: new Pace({ clock, utilization: zero, monotonicMs: zero, processorMs: zero }),
    log: createLog('info', { write: () => {} }),
    watchedLedgers: () => ids,
    ownsShardOf: (id) => !id.startsWith('other'),
    look: (id) => {
      looked.push(id);
      return look(id);
    },
  });
  return { looked, ledgerLook };
}

const many = Array.from({ length: 5_000 }, (_, at) => `own ${at}`);

test('a round stops after 2,000 ledgers, the next one goes on there, and behind the last one comes the first', async () => {
  const { looked, ledgerLook } = looking(many);
  await ledgerLook.round();
  expect(looked).toEqual(many.slice(0, 2_000));
  await ledgerLook.round();
  await ledgerLook.round();
  expect(looked).toEqual(many);
  await ledgerLook.round();
  expect(looked.slice(5_000)).toEqual(many.slice(0, 2_000));
});

test('those of other nodes are passed over', async () => {
  const { looked, ledgerLook } = looking(['other 1', ...Array(3_000).fill('other 2'), 'own']);
  await ledgerLook.round();
  expect(looked).toEqual(['own']);
});

test('everything else has its turn between two ledgers', async () => {
  const { looked, ledgerLook } = looking(many);
  void ledgerLook.round();
  await settled();
  await settled();
  expect(looked.length).toBeLessThan(5);
  await ledgerLook.stop();
});

test('while one round is under way no other begins, and none after a stop', async () => {
  const held = Promise.withResolvers<void>();
  const { looked, ledgerLook } = looking(['own 1', 'own 2'], () => held.promise);
  const round = ledgerLook.round();
  await settled();
  await ledgerLook.round();
  expect(looked).toEqual(['own 1']);
  const stopped = ledgerLook.stop();
  held.resolve();
  await Promise.all([round, stopped]);
  await ledgerLook.round();
  expect(looked).toEqual(['own 1']);
});

test('a ledger that cannot be looked at ends the round, and the next one goes on behind it', async () => {
  const { looked, ledgerLook } = looking(['own 1', 'own 2'], async (id) => {
    if (id === 'own 1') throw new Error('the store is gone');
  });
  await ledgerLook.round();
  await ledgerLook.round();
  expect(looked).toEqual(['own 1', 'own 2']);
});
