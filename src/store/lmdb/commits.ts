import { LedgerError } from '../../domain/errors.ts';
import { Slab } from '../../runtime/collections/slab.ts';
import { OutcomeUnknown, StoreStopped } from '../ledger-store.ts';

/** If no commit ends for this long while writes wait, the disk or LMDB counts as stuck for good, ms. */
const commitStallMs = 30_000;
const STALL_CHECKS = 3;

/**
 * Every write of an environment goes through this class. Invariant: after the first failed write, no write is ever
 * reported as written. A failed fdatasync may have dropped dirty pages, and later calls of fdatasync may succeed all
 * the same. So what LMDB reports afterwards proves nothing: only a new process that reads the disk again knows what is
 * stored.
 */
export class Commits {
  readonly #onFatal: (error: Error) => void;
  #waiting = new Slab<(error: OutcomeUnknown) => void>();
  #isBroken = false;
  #isClosed = false;
  #finished = 0;
  #stallTimer: NodeJS.Timeout | null = null;
  /** Ends when the failure was reported. */
  #reporting: Promise<void> | null = null;

  /** `onFatal` is called once, after the first failed write. The node should stop then. */
  constructor(onFatal: (error: Error) => void) {
    this.#onFatal = onFatal;
  }

  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Throws `unavailable` once the store is closed. After a failed write, committed data can still be read. */
  checkReadable(): void {
    if (this.#isClosed) throw new LedgerError('unavailable', 'The store is closed.');
  }

  /** Throws StoreStopped once a write has failed, and `unavailable` once the store is closed. */
  checkUsable(): void {
    this.checkReadable();
    if (this.#isBroken) throw new StoreStopped();
  }

  /**
   * Runs `start`, which passes one conditional block of writes to LMDB. Resolves with true once the block is durable,
   * or with false if its condition did not hold and nothing was written. Throws OutcomeUnknown. Throws what
   * checkUsable throws if nothing was sent.
   */
  write(start: () => Promise<boolean>): Promise<boolean> {
    this.checkUsable();
    return new Promise((resolve, reject) => {
      const slot = this.#waiting.add(reject);
      const done = (held: boolean) => {
        this.#finished++;
        if (this.#waiting.remove(slot)) resolve(held);
      };
      try {
        start().then(done, (error: unknown) => this.#fail(error));
      } catch (error) {
        // LMDB may have part of the block already, and may write that part.
        this.#fail(error);
      }
      this.#watch();
    });
  }

  /** Like `write`, for a write that may be repeated: LedgerError `unavailable` replaces OutcomeUnknown. */
  async writeRepeatable(message: string, start: () => Promise<boolean>): Promise<boolean> {
    try {
      return await this.write(start);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      throw new LedgerError('unavailable', message, {}, error);
    }
  }

  /** Refuses all further reads and writes. Closing the environment waits for the writes in flight. */
  close(): void {
    this.#isClosed = true;
    this.#stopWatching();
  }

  /** Resolves when a failed write, if there was one, has been reported by `onFatal`. */
  async reported(): Promise<void> {
    await this.#reporting;
  }

  #fail(error: unknown): void {
    const isFirst = !this.#isBroken;
    this.#isBroken = true;
    for (const reject of this.#waiting) reject(new OutcomeUnknown(error));
    this.#waiting = new Slab();
    this.#stopWatching();
    if (!isFirst) return;
    this.#reporting = realError(error).then((cause) =>
      this.#onFatal(new Error(`A write to the disk failed: ${String(cause)}`, { cause })),
    );
  }

  /** Watches for stuck commits: if lmdb-js cannot begin a transaction, it leaves the promises pending for ever. */
  #watch(): void {
    if (this.#stallTimer !== null || this.#isBroken) return;
    let finished = this.#finished;
    let idleChecks = 0;
    this.#stallTimer = setInterval(() => {
      idleChecks = finished === this.#finished && this.#waiting.size > 0 ? idleChecks + 1 : 0;
      finished = this.#finished;
      if (idleChecks >= STALL_CHECKS) this.#fail(new Error(`no commit has finished for ${commitStallMs} ms`));
      if (this.#waiting.size === 0) this.#stopWatching();
    }, commitStallMs / STALL_CHECKS).unref();
  }

  #stopWatching(): void {
    if (this.#stallTimer !== null) clearInterval(this.#stallTimer);
    this.#stallTimer = null;
  }
}

/** How long the real error may come after the writes are rejected, in a later turn of the event loop. */
const realErrorMaxMs = 1_000;

/** lmdb-js rejects each write of a commit with an error that carries a promise of the real error. */
function realError(error: unknown): Promise<unknown> {
  const real = error instanceof Error && 'commitError' in error ? error.commitError : null;
  if (!(real instanceof Promise)) return Promise.resolve(error);
  const tooLate = new Promise((resolve) => setTimeout(resolve, realErrorMaxMs, error));
  return Promise.race([real.catch((cause: unknown) => cause), tooLate]);
}
