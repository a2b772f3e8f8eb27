import type { Registry } from 'prom-client';
import type { Clock } from '../runtime/clock/clock.ts';
import type { Log } from '../runtime/telemetry/log.ts';
import { metricsIn } from '../runtime/telemetry/metrics.ts';
import type { RecordStore } from '../store/record-store.ts';

/** If no expired records were left. */
const everyMs = 60_000;
/** Records removed at once. Then the sweep rests as long as that took, but at least restMinMs. */
const recordsAtOnceMax = 250;
const restMinMs = 50;

interface RecordSweepingParts {
  readonly records: Pick<RecordStore, 'sweep'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry: Registry;
  isSweeper(): boolean;
}

/** Removes expired records. Rests half of the time, for other work. */
export class RecordSweeping implements AsyncDisposable {
  readonly #parts: RecordSweepingParts;
  /** Every record that expired before is removed. */
  #doneTo: number;
  #running: Promise<void> = Promise.resolve();
  #cancel: () => void;
  #stopped = false;

  constructor(parts: RecordSweepingParts) {
    this.#parts = parts;
    this.#doneTo = parts.clock.now();
    this.#cancel = this.#after(everyMs);
    metricsIn(parts.registry).readGauge({
      name: 'svc_sweep_behind_seconds',
      help: 'How long ago the oldest record that may still be there ran out, on the node that removes them; 0 on all others.',
      read: () => this.#behindSeconds(),
    });
  }

  #behindSeconds(): number {
    return this.#parts.isSweeper() ? Math.max(0, this.#parts.clock.now() - this.#doneTo) / 1_000 : 0;
  }

  #after(delayMs: number): () => void {
    return this.#parts.clock.after(delayMs, () => {
      this.#running = this.#run();
    });
  }

  async #run(): Promise<void> {
    const restMs = this.#parts.isSweeper() ? await this.#sweep() : this.#leave();
    if (!this.#stopped) this.#cancel = this.#after(restMs);
  }

  async #sweep(): Promise<number> {
    const { records, clock, log } = this.#parts;
    const begunMs = clock.now();
    try {
      const { removed, oldestLeft } = await records.sweep(begunMs, recordsAtOnceMax);
      this.#doneTo = oldestLeft ?? begunMs;
      if (oldestLeft !== null && removed > 0) return Math.max(restMinMs, clock.now() - begunMs);
    } catch (error) {
      log.warn({ err: error }, 'removing records that have run out failed; it is tried again');
    }
    return everyMs;
  }

  /** The progress of another node is not known here. */
  #leave(): number {
    this.#doneTo = this.#parts.clock.now();
    return everyMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#running;
  }
}
