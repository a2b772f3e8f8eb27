import type { Clock } from '../../runtime/clock/clock.ts';

/** How long after a read of a record a node may act on what it said, ms: several reads may fail meanwhile. */
export const recordTrustMs = 10_000;
const readEveryMs = 2_000;
/** Interval after a failed read. */
const readAgainMs = 500;

interface RecordWatchParts {
  readonly clock: Clock;
  /** Reads the record. What it says holds until `trustedUntilMs`. */
  readonly read: (trustedUntilMs: number) => Promise<void>;
  /** Of successive failures only the first is reported. */
  readonly failed: (error: unknown) => void;
}

/** Reads a record every two seconds, so that the node acts on its newest state. */
export class RecordWatch {
  readonly #parts: RecordWatchParts;
  #cancel = () => {};
  #stopped = false;

  constructor(parts: RecordWatchParts) {
    this.#parts = parts;
  }

  /** Rejects if the first read fails. */
  async start(): Promise<void> {
    await this.#read();
    this.#readIn(readEveryMs);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #read(): Promise<void> {
    return this.#parts.read(this.#parts.clock.now() + recordTrustMs);
  }

  #readIn(delayMs: number, failedBefore = false): void {
    if (this.#stopped) return;
    this.#cancel = this.#parts.clock.after(delayMs, () => {
      this.#read().then(
        () => this.#readIn(readEveryMs),
        (error: unknown) => {
          if (!failedBefore) this.#parts.failed(error);
          this.#readIn(readAgainMs, true);
        },
      );
    });
  }
}
