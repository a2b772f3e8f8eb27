import type { Registry } from 'prom-client';
import type { Log } from '../../runtime/telemetry/log.ts';
import { metricsIn } from '../../runtime/telemetry/metrics.ts';
import { AccessQueue, type HistoryReport } from '../../service/audit/access-history.ts';
import type { NodeContext } from './context.ts';

export function startAccessHistory({ access, memory, clock, random, log, metrics }: NodeContext): AccessQueue {
  const accesses = new AccessQueue({ log: access, memory, clock, random, report: accessReport(log) });
  meterAccesses(metrics.registry, accesses);
  return accesses;
}

export function meterAccesses(registry: Registry, queue: Pick<AccessQueue, 'held' | 'lost'>): void {
  const { readGauge, readCounter } = metricsIn(registry);
  readGauge({
    name: 'svc_access_records_held',
    help:
      'Access records that wait to be written; from 10,000 on answers of actors with their part of them wait for room, ' +
      'at 100,000 records are lost. Both are lower if MEMORY_BUDGET_MIB is below 245.',
    read: () => queue.held,
  });
  readCounter({
    name: 'svc_access_records_lost_total',
    help: 'Access records that were never written; the log says why.',
    read: () => queue.lost,
  });
}

function accessReport(log: Log): HistoryReport {
  return {
    failing: (error, held) => log.warn({ err: error, held }, 'access history cannot be written, and is tried again'),
    recovered: () => log.info({}, 'access history is written again'),
    lost: (records, cause) => log.error({ records, err: cause }, 'access history lost'),
  };
}
