import { randomBytes } from 'node:crypto';
import { LedgerError } from '../../domain/errors.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import { isPlausibleTime } from '../../runtime/clock/plausible-clock.ts';
import { systemClock } from '../../runtime/clock/system-clock.ts';
import { FairPlaces } from '../../runtime/limits/fair-places.ts';
import { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { type CurrentLoad, createMetrics, type Metrics } from '../../runtime/telemetry/metrics.ts';
import { pooledRandom, type Random } from '../../service/calls/entropy.ts';
import { LedgerReading } from '../../service/reading/ledger-reading.ts';
import { changeMutex } from '../../service/records/change-mutex.ts';
import type { KeyedMutex } from '../../store/keyed-mutex.ts';
import type { NodeParts } from '../node-parts.ts';

export interface NodeContext extends NodeParts {
  readonly production: boolean;
  readonly machine: Pick<Clock, 'now'>;
  readonly memory: MemoryBudget;
  readonly reads: FairPlaces;
  readonly reading: LedgerReading;
  /** Held by those who change a record. */
  readonly changes: KeyedMutex;
  readonly metrics: Metrics;
  readonly random: Random;
  now(): number;
  monotonicMs(): number;
  /** Whether the machine's clock is plausible. */
  isClockGood(): boolean;
  isClockRight(): boolean;
  ownsShardOf(id: string): boolean;
}

/** `load` is read when metrics are collected. */
export function nodeContext(
  parts: NodeParts,
  load: Pick<CurrentLoad, 'runningCalls' | 'mailboxDepth' | 'verificationQueue'>,
): NodeContext {
  const { config, ledgers, clock, log, membership, machine = systemClock } = parts;
  const { memory = new MemoryBudget(config.memoryBudgetBytes), isStoreWritable } = parts;
  const reads = new FairPlaces(config.reads, tooManyReads);
  const now = () => clock.now();
  return {
    ...parts,
    production: config.mode === 'production',
    machine,
    memory,
    reads,
    reading: new LedgerReading(ledgers, now),
    changes: changeMutex(config.changesWaiting),
    metrics: createMetrics({ ...load, memory, reads, isStoreWritable, logLinesDropped: () => log.linesDropped() }),
    random: pooledRandom((bytes) => randomBytes(bytes)),
    now,
    monotonicMs: () => performance.now(),
    isClockGood: () => isPlausibleTime(machine.now()),
    isClockRight: () => membership?.isClockRight() ?? true,
    ownsShardOf: (id) => membership?.ownsShardOf(id) ?? true,
  };
}

function tooManyReads(): LedgerError {
  return new LedgerError(
    'overloaded',
    'More reads wait than this node can take: retry in a moment, and read less at once.',
    { bound: 'READS_WAITING' },
  );
}
