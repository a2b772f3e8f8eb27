import { expect, test } from 'vitest';
import { BackgroundLimiter } from '../../../src/runtime/background-limiter.ts';
import { createLog } from '../../../src/runtime/telemetry/log.ts';
import { TailScan } from '../../../src/webhooks/tail/tail-scan.ts';
import { settled } from '../../support/clock.ts';
import { rig } from '../../support/world.ts';

/** Scans these ledgers. */
function scanRig(ids: readonly string[], scanLedger: (id: string) => Promise<void> = async () => {}) {
  const scanned: string[] = [];
  const { clock } = rig();
  const zero = () => 0;
  const scan = new TailScan({
    limiter: new BackgroundLimiter({ clock, utilization: zero, monotonicMs: zero, processorMs: zero, busyShare: 1 }),
    log: createLog('info', { write: () => {} }),
    watchedLedgers: () => ids,
    ownsShardOf: (id) => !id.startsWith('other'),
    scanLedger: (id) => {
      scanned.push(id);
      return scanLedger(id);
    },
  });
  return { scanned, scan };
}

const many = Array.from({ length: 5_000 }, (_, at) => `own ${at}`);

test('a round scans 2,000 ledgers, the next one continues there, from the last to the first ledger', async () => {
  const { scanned, scan } = scanRig(many);
  await scan.round();
  expect(scanned).toEqual(many.slice(0, 2_000));
  await scan.round();
  await scan.round();
  expect(scanned).toEqual(many);
  await scan.round();
  expect(scanned.slice(5_000)).toEqual(many.slice(0, 2_000));
});

test('ledgers of other nodes are skipped', async () => {
  const { scanned, scan } = scanRig(['other 1', ...Array(3_000).fill('other 2'), 'own']);
  await scan.round();
  expect(scanned).toEqual(['own']);
});

test('other work runs between two ledgers', async () => {
  const { scanned, scan } = scanRig(many);
  void scan.round();
  await settled();
  await settled();
  expect(scanned.length).toBeLessThan(5);
  await scan.stop();
});

test('no round begins while one runs, or after a stop', async () => {
  const held = Promise.withResolvers<void>();
  const { scanned, scan } = scanRig(['own 1', 'own 2'], () => held.promise);
  const round = scan.round();
  await settled();
  await scan.round();
  expect(scanned).toEqual(['own 1']);
  const stopped = scan.stop();
  held.resolve();
  await Promise.all([round, stopped]);
  await scan.round();
  expect(scanned).toEqual(['own 1']);
});

test('a ledger that cannot be scanned ends the round, and the next round continues behind it', async () => {
  const { scanned, scan } = scanRig(['own 1', 'own 2'], async (id) => {
    if (id === 'own 1') throw new Error('the store is gone');
  });
  await scan.round();
  await scan.round();
  expect(scanned).toEqual(['own 1', 'own 2']);
});
