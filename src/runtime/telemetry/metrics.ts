import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { MemoryBudget, memoryKinds } from '../limits/memory-budget.ts';

const secondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Values that are read when the metrics are collected. */
export interface CurrentLoad {
  runningCalls(): number;
  mailboxDepth(): number;
  verificationQueue(): number;
  isStoreWritable(): boolean;
  logLinesDropped(): number;
  readonly memory: Pick<MemoryBudget, 'maxBytes' | 'heldBytes'>;
  readonly reads: { readonly held: number; readonly waiting: number };
}

const noLoad: CurrentLoad = {
  runningCalls: () => 0,
  mailboxDepth: () => 0,
  verificationQueue: () => 0,
  isStoreWritable: () => true,
  logLinesDropped: () => 0,
  memory: new MemoryBudget(0),
  reads: { held: 0, waiting: 0 },
};

interface Description<T extends string = never> {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: T[];
}

/** `read` is called when the metrics are collected. It returns the value, or one for each value of the label. */
type Reading = Description &
  ({ read(): number } | { readonly label: string; read(): Readonly<Record<string, number>> });

/** Makes metrics in the registry. */
export function metricsIn(registry: Registry) {
  const registers = [registry];
  return {
    counter: <T extends string = never>(description: Description<T>) => new Counter({ ...description, registers }),
    histogram: <T extends string = never>(description: Description<T> & { readonly buckets: number[] }) =>
      new Histogram({ ...description, registers }),
    readGauge(reading: Reading): void {
      new Gauge({
        ...described(reading),
        registers,
        collect() {
          for (const [labels, value] of valuesOf(reading)) this.set(labels, value);
        },
      });
    },
    readCounter(reading: Reading): void {
      new Counter({
        ...described(reading),
        registers,
        collect() {
          this.reset();
          for (const [labels, value] of valuesOf(reading)) this.inc(labels, value);
        },
      });
    },
  };
}

function described(reading: Reading): Description<string> {
  const { name, help } = reading;
  return { name, help, labelNames: 'label' in reading ? [reading.label] : [] };
}

function valuesOf(reading: Reading): [labels: Record<string, string>, value: number][] {
  if (!('label' in reading)) return [[{}, reading.read()]];
  return Object.entries(reading.read()).map(([key, value]) => [{ [reading.label]: key }, value]);
}

/** The metrics of a node. The help text of each, which operators see too, says what it means. */
export type Metrics = ReturnType<typeof createMetrics>;

/** Metrics in a registry of their own, with those of the process (event loop lag, memory, garbage collection). */
export function createMetrics(load: CurrentLoad = noLoad) {
  const registry = new Registry();
  const { counter, histogram, readGauge, readCounter } = metricsIn(registry);
  collectDefaultMetrics({ register: registry });
  readGauge({
    name: 'svc_memory_budget_bytes',
    help:
      'Bytes held for callers, and behind their answers (kind queue), by kind; kind max is the bound of all together ' +
      '(MEMORY_BUDGET_MIB).',
    label: 'kind',
    read: () => ({
      ...Object.fromEntries(memoryKinds.map((kind) => [kind, load.memory.heldBytes(kind)])),
      max: load.memory.maxBytes,
    }),
  });
  readGauge({
    name: 'svc_reads',
    help: 'Long reads now, by state: running (at most READS_AT_ONCE) or waiting (at most READS_WAITING).',
    label: 'state',
    read: () => ({ running: load.reads.held, waiting: load.reads.waiting }),
  });
  readGauge({
    name: 'svc_store_writable',
    help: '1: the store takes writes. 0: a write to the disk failed, or Cassandra does not answer this node.',
    read: () => (load.isStoreWritable() ? 1 : 0),
  });
  readGauge({ name: 'svc_running_calls', help: 'Calls that run now, streams among them.', read: load.runningCalls });
  readGauge({ name: 'svc_mailbox_depth', help: 'Commands waiting in all mailboxes.', read: load.mailboxDepth });
  readGauge({
    name: 'svc_verification_queue',
    help: 'Signatures waiting to be verified.',
    read: load.verificationQueue,
  });
  readCounter({
    name: 'svc_log_lines_dropped_total',
    help: 'Lines of the log that were dropped: nobody read them in time, or they could not be written.',
    read: load.logLinesDropped,
  });
  return {
    registry,
    requests: counter({
      name: 'svc_requests_total',
      help: 'Answers, by transport, method and error code (ok: none). Calls that succeed too late count twice.',
      labelNames: ['transport', 'method', 'code'],
    }),
    requestSeconds: histogram({
      name: 'svc_request_seconds',
      help: 'From the end of the headers to the answer; streams count with their whole length.',
      labelNames: ['transport', 'method'],
      buckets: secondsBuckets,
    }),
    streamEventErrors: counter({
      name: 'svc_stream_event_errors_total',
      help: 'Events of AppendEvents that were answered with an error, by its code.',
      labelNames: ['code'],
    }),
    appends: counter({
      name: 'svc_appends_total',
      help: 'Commands to ledgers, by result.',
      labelNames: ['result'],
    }),
    claims: counter({ name: 'svc_claims_total', help: 'Claims of ledgers, by reason.', labelNames: ['reason'] }),
    fencedAppends: counter({
      name: 'svc_fenced_appends_total',
      help: 'Commits refused by the store because a newer claim existed.',
    }),
    unknownOutcomes: counter({
      name: 'svc_unknown_outcomes_total',
      help: 'Batches that the store did not confirm, by what was found.',
      labelNames: ['resolution'],
    }),
    damagedLedgers: counter({
      name: 'svc_damaged_ledgers_total',
      help: 'Times that a ledger took no append because its stored events are damaged.',
    }),
    commitBatchEvents: histogram({
      name: 'svc_commit_batch_events',
      help: 'Events in a commit.',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128],
    }),
    commitSeconds: histogram({
      name: 'svc_commit_seconds',
      help: 'From handing a batch to the store until it is durable.',
      buckets: secondsBuckets,
    }),
    activationSeconds: histogram({
      name: 'svc_activation_seconds',
      help: 'Loading a ledger: claim, snapshot, tail.',
      buckets: secondsBuckets,
    }),
  };
}
