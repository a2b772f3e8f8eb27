import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { MemoryBudget, memoryKinds } from '../limits/memory-budget.ts';

/** The metrics of a node. The help text of each, which operators see too, says what it means. */
export interface Metrics {
  readonly registry: Registry;
  readonly requests: Counter<'transport' | 'method' | 'code'>;
  readonly requestSeconds: Histogram<'transport' | 'method'>;
  readonly runningCalls: Gauge;
  readonly appends: Counter<'result'>;
  readonly claims: Counter<'reason'>;
  readonly fencedAppends: Counter;
  readonly unknownOutcomes: Counter<'resolution'>;
  readonly damagedLedgers: Counter;
  readonly commitBatchEvents: Histogram;
  readonly commitSeconds: Histogram;
  readonly activationSeconds: Histogram;
  readonly mailboxDepth: Gauge;
  readonly verificationQueue: Gauge;
}

const secondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const batchBuckets = [1, 2, 4, 8, 16, 32, 64, 128];

/** Values that are read when the metrics are collected. */
export interface CurrentLoad {
  runningCalls(): number;
  mailboxDepth(): number;
  verificationQueue(): number;
  isStoreWritable(): boolean;
  logLinesDropped(): number;
  readonly memory: Pick<MemoryBudget, 'maxBytes' | 'heldBytes'>;
  /** Long reads. */
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

/** Metrics in a registry of their own, with those of the process (event loop lag, memory, garbage collection). */
export function createMetrics(load: CurrentLoad = noLoad): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'svc_memory_budget_bytes',
    help: 'Bytes held for callers, by kind; kind max is the bound of all together (MEMORY_BUDGET_MIB).',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const kind of memoryKinds) this.set({ kind }, load.memory.heldBytes(kind));
      this.set({ kind: 'max' }, load.memory.maxBytes);
    },
  });
  new Gauge({
    name: 'svc_store_writable',
    help: '1: the store takes writes. 0: a write to the disk failed, or Cassandra does not answer this node.',
    registers,
    collect() {
      this.set(load.isStoreWritable() ? 1 : 0);
    },
  });
  new Counter({
    name: 'svc_log_lines_dropped_total',
    help: 'Lines of the log that were dropped: nobody read them in time, or they could not be written.',
    registers,
    collect() {
      this.reset();
      this.inc(load.logLinesDropped());
    },
  });
  new Gauge({
    name: 'svc_reads',
    help: 'Long reads now, by state: running (at most READS_AT_ONCE) or waiting (at most READS_WAITING).',
    labelNames: ['state'],
    registers,
    collect() {
      this.set({ state: 'running' }, load.reads.held);
      this.set({ state: 'waiting' }, load.reads.waiting);
    },
  });
  return {
    registry,
    requests: new Counter({
      name: 'svc_requests_total',
      help: 'Calls answered, by transport, method and error code (ok: none).',
      labelNames: ['transport', 'method', 'code'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'svc_request_seconds',
      help: 'From the end of the headers to the answer; streams count with their whole length.',
      labelNames: ['transport', 'method'],
      buckets: secondsBuckets,
      registers,
    }),
    runningCalls: new Gauge({
      name: 'svc_running_calls',
      help: 'Calls that run now, streams among them.',
      registers,
      collect() {
        this.set(load.runningCalls());
      },
    }),
    appends: new Counter({
      name: 'svc_appends_total',
      help: 'Commands to ledgers, by result.',
      labelNames: ['result'],
      registers,
    }),
    claims: new Counter({
      name: 'svc_claims_total',
      help: 'Claims of ledgers, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    fencedAppends: new Counter({
      name: 'svc_fenced_appends_total',
      help: 'Commits refused by the store because a newer claim existed.',
      registers,
    }),
    unknownOutcomes: new Counter({
      name: 'svc_unknown_outcomes_total',
      help: 'Commits whose outcome the store did not say, by what was found.',
      labelNames: ['resolution'],
      registers,
    }),
    damagedLedgers: new Counter({
      name: 'svc_damaged_ledgers_total',
      help: 'Times that a ledger took no append because its stored events are damaged.',
      registers,
    }),
    commitBatchEvents: new Histogram({
      name: 'svc_commit_batch_events',
      help: 'Events in a commit.',
      buckets: batchBuckets,
      registers,
    }),
    commitSeconds: new Histogram({
      name: 'svc_commit_seconds',
      help: 'From handing a batch to the store until it is durable.',
      buckets: secondsBuckets,
      registers,
    }),
    activationSeconds: new Histogram({
      name: 'svc_activation_seconds',
      help: 'Loading a ledger: claim, snapshot, tail.',
      buckets: secondsBuckets,
      registers,
    }),
    mailboxDepth: new Gauge({
      name: 'svc_mailbox_depth',
      help: 'Commands waiting in all mailboxes.',
      registers,
      collect() {
        this.set(load.mailboxDepth());
      },
    }),
    verificationQueue: new Gauge({
      name: 'svc_verification_queue',
      help: 'Signatures waiting to be verified.',
      registers,
      collect() {
        this.set(load.verificationQueue());
      },
    }),
  };
}
