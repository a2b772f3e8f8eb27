import { pino } from 'pino';
import { expect, test } from 'vitest';
import { actorMeter } from '../../../src/node/actor-meter.ts';
import { createMetrics } from '../../../src/runtime/telemetry/metrics.ts';

test('unknown outcomes are counted by what was found, from a nought that is there at the start, and logged', async () => {
  const metrics = createMetrics();
  const lines: object[] = [];
  const meter = actorMeter(metrics, pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }));
  const series = async () =>
    (await metrics.registry.metrics()).match(/^svc_unknown_outcomes_total\{.*$/gm)?.map((line) => line.slice(26));
  expect(await series()).toEqual([
    '{resolution="written"} 0',
    '{resolution="not_written"} 0',
    '{resolution="unsettled"} 0',
  ]);
  const batch = {
    ledgerId: 'a ledger',
    seq: 7,
    events: 2,
    requestIds: ['a', 'b'],
    cause: new Error('no answer in time'),
  };
  meter.unknownOutcome('not_written', batch);
  meter.unknownOutcome('unsettled', batch);
  meter.unknownOutcome('unsettled', batch);
  expect(await series()).toEqual([
    '{resolution="written"} 0',
    '{resolution="not_written"} 1',
    '{resolution="unsettled"} 2',
  ]);
  const shown = {
    ledger_id: 'a ledger',
    seq: 7,
    events: 2,
    request_ids: ['a', 'b'],
    err: { message: 'no answer in time' },
  };
  expect(lines).toMatchObject([
    { ...shown, level: 40, resolution: 'not_written' },
    { ...shown, level: 50, resolution: 'unsettled' },
    { ...shown, level: 50, resolution: 'unsettled' },
  ]);
});
