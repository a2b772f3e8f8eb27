import type { Clock } from '../../runtime/clock/clock.ts';

/** How long after a read of a record a node may act on what it said, ms: several reads may fail meanwhile. */
export const recordTrustMs = 10_000;
const lookEveryMs = 2_000;
/** Interval after a failed read. */
const lookAgainMs = 500;

interface RecordWatchParts {
  readonly clock: Clock;
  /** Reads the record. What it says holds until `trustedUntilMs`. */
  readonly look: (trustedUntilMs: number) => Promise<void>;
  /** Of successive failures only the first is reported. */
  readonly failed: (error: unknown) => void;
}

/** Looks periodically at a record that every node must know the newest state of. */
export class RecordWatch {
  readonly #parts: RecordWatchParts;
  #cancel = () => {};
  #stopped = false;

  constructor(parts: RecordWatchParts) {
    this.#parts = parts;
  }

  /** Rejects if the first look fails. */
  async start(): Promise<void> {
    await this.#look();
    this.#lookIn(lookEveryMs);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #look(): Promise<void> {
    return this.#parts.look(this.#parts.clock.now() + recordTrustMs);
  }

  #lookIn(delayMs: number, failedBefore = false): void {
    if (this.#stopped) return;
    this.#cancel = this.#parts.clock.after(delayMs, () => {
      this.#look().then(
        () => this.#lookIn(lookEveryMs),
        (error: unknown) => {
          if (!failedBefore) this.#parts.failed(error);
          this.#lookIn(lookAgainMs, true);
        },
      );
    });
  }
}
