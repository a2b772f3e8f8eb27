import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Metric, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createClusterMetrics } from '../../../cluster/metrics.ts';
import { RecordSweeping } from '../../../src/node/record-sweeping.ts';
import { refusedSnapshots } from '../../../src/node/refused-snapshots.ts';
import { meterAccesses } from '../../../src/node/subsystems/accesses.ts';
import { meterBehindLogs } from '../../../src/node/subsystems/authority.ts';
import { meterProofs } from '../../../src/node/subsystems/proofs.ts';
import { watchUnreadable } from '../../../src/node/unreadable-records.ts';
import { watchClock } from '../../../src/runtime/clock/clock-watch.ts';
import { createLog } from '../../../src/runtime/telemetry/log.ts';
import { createMetrics } from '../../../src/runtime/telemetry/metrics.ts';
import { followMeter, headMeter } from '../../../src/service/following/follow-meter.ts';
import { BehindLogs } from '../../../src/service/log-identity/behind-logs.ts';
import { webhookMeter } from '../../../src/webhooks/webhook-meter.ts';
import { ManualClock } from '../../support/clock.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';

const root = join(import.meta.dirname, '../../..');
const operations = readFileSync(join(root, 'docs/operations.md'), 'utf8');
/** All pages but that of the API, whose fields look like metrics. */
const documents = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md') && name !== 'api.md')
  .map((name) => readFileSync(join(root, 'docs', name), 'utf8'));

/** All metrics of a node in a cluster. */
function registryOfAll(): Registry {
  const { registry } = createMetrics();
  webhookMeter(registry, { watched: () => 0, known: () => 0, held: () => 0 });
  followMeter(
    registry,
    () => 0,
    () => 0,
  );
  headMeter(registry);
  meterAccesses(registry, { held: 0, lost: 0 });
  meterBehindLogs(registry, new BehindLogs(false));
  meterProofs(registry);
  const records = new MemoryRecordStore();
  const [clock, log] = [new ManualClock(0), createLog('silent')];
  new RecordSweeping({ records, clock, log, registry, isSweeper: () => true });
  watchUnreadable({ log, registry });
  refusedSnapshots({ log, registry });
  watchClock({ clock, machine: clock, log, registry });
  const clusterState = {
    shards: () => ({ held: 1, leaving: 0, elsewhere: 0 }),
    projectionLag: () => 0,
    clock: () => ({ aheadMs: 0, isRight: true }),
    badRedisValues: { member: 0, order: 0, lease: 0, news: 0 },
  };
  createClusterMetrics(clusterState).register(registry);
  return registry;
}

const registry = registryOfAll();
const exported = new Set(registry.getMetricsAsArray().map(({ name }) => name));
const own = [...exported].filter((name) => name.startsWith('svc_')).sort();

function labelNames(name: string): readonly string[] {
  return (registry.getSingleMetric(name) as Metric & { readonly labelNames: readonly string[] }).labelNames;
}

/** Metrics that a text names, with what stands in braces behind each, if anything. */
function named(text: string): { readonly name: string; readonly labels: readonly string[] }[] {
  return [...text.matchAll(/`((?:svc|nodejs|process)_[a-z_]+)(?:\{([^}`]*)\})?`/g)].map(
    ([, name = '', labels = '']) => ({ name, labels: labels === '' ? [] : labels.split(',') }),
  );
}

test('this test covers every metric of the code', () => {
  const made = ['src', 'cluster'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .flatMap((path) => [...readFileSync(join(root, folder, path), 'utf8').matchAll(/\bname: '(svc_\w+)'/g)])
      .map(([, name = '']) => name),
  );
  expect(made.sort()).toEqual(own);
});

test('every metric of the code has a row in the tables of the internal port', () => {
  const rows = operations.split('\n').filter((line) => line.startsWith('| `svc_') && line.split('|').length === 4);
  const documented = rows.flatMap((row) => named(row.split('|')[1] ?? '').map(({ name }) => name));
  expect(documented.sort()).toEqual(own);
});

test('every metric that the documentation names is exported, with the labels that it names', () => {
  const mentioned = documents.flatMap(named);
  expect(mentioned.length).toBeGreaterThan(own.length);
  expect(mentioned.filter(({ name }) => !exported.has(name))).toEqual([]);
  for (const { name, labels } of mentioned)
    for (const label of labels) expect(labelNames(name), name).toContain(label.split('=')[0]);
});

test('a metric with labels is documented with all of them', () => {
  const complete = (name: string) =>
    named(operations).some((mention) => mention.name === name && mention.labels.length === labelNames(name).length);
  expect(own.filter((name) => labelNames(name).length > 0 && !complete(name))).toEqual([]);
});

test('series of alarms exist before their first event', async () => {
  const text = await registry.metrics();
  const series = documents
    .flatMap(named)
    .filter(({ labels }) => labels.some((label) => label.includes('=')))
    .map(({ name, labels }) => `${name}{${labels.join(',')}} `);
  expect(series.length).toBeGreaterThan(1);
  for (const one of series) expect(text).toContain(one);
});
