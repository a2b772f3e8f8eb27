import { expect, test } from 'vitest';
import { actorMeter } from '../../../src/node/actor-meter.ts';
import { createMetrics } from '../../../src/runtime/telemetry/metrics.ts';

test('unknown outcomes are counted by what was found, from a nought that is there at the start', async () => {
  const metrics = createMetrics();
  const meter = actorMeter(metrics);
  const series = async () =>
    (await metrics.registry.metrics()).match(/^svc_unknown_outcomes_total\{.*$/gm)?.map((line) => line.slice(26));
  expect(await series()).toEqual([
    '{resolution="written"} 0',
    '{resolution="not_written"} 0',
    '{resolution="unsettled"} 0',
  ]);
  meter.unknownOutcome('not_written');
  meter.unknownOutcome('unsettled');
  meter.unknownOutcome('unsettled');
  expect(await series()).toEqual([
    '{resolution="written"} 0',
    '{resolution="not_written"} 1',
    '{resolution="unsettled"} 2',
  ]);
});
