import { LedgerError } from '../../domain/errors.ts';
import { Slab } from '../../domain/slab.ts';
import { OutcomeUnknown } from '../ledger-store.ts';
import { StoreStopped } from '../store-stopped.ts';

/** How long a commit may take before the disk, or LMDB's writer, counts as stuck for good. */
const commitStallMs = 30_000;
const STALL_CHECKS = 3;

/**
 * Every write of an environment goes through here. Invariant: after the first write that failed, none is ever called
 * written again. A failed fdatasync may have dropped dirty pages while later ones succeed, so what LMDB says afterwards
 * proves nothing; only a new process that reads the disk again knows.
 */
export class Commits {
  readonly #onFatal: (error: Error) => void;
  #waiting = new Slab<(error: OutcomeUnknown) => void>();
  #isBroken = false;
  #isClosed = false;
  #finished = 0;
  #stallTimer: NodeJS.Timeout | null = null;

  /** `onFatal` is called once, when the environment has become useless: the node should stop. */
  constructor(onFatal: (error: Error) => void) {
    this.#onFatal = onFatal;
  }

  /** Whether a write has failed. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** `unavailable` once the store was closed. What was committed before a failure can still be read. */
  checkReadable(): void {
    if (this.#isClosed) throw new LedgerError('unavailable', 'The store is closed.');
  }

  /** StoreStopped once a write has failed; `unavailable` once the store was closed. */
  checkUsable(): void {
    this.checkReadable();
    if (this.#isBroken) throw new StoreStopped();
  }

  /**
   * Runs `start`, which hands one conditional block of writes to LMDB, and answers whether its condition held. Durable
   * when it resolves with true; nothing was written when it resolves with false. Throws OutcomeUnknown, or
   * `unavailable` where nothing was tried.
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
        // A block of which a part was handed over may be written in part.
        this.#fail(error);
      }
      this.#watch();
    });
  }

  /** No more writes. Those under way are waited for by closing the environment. */
  close(): void {
    this.#isClosed = true;
    this.#stopWatching();
  }

  #fail(error: unknown): void {
    const first = !this.#isBroken;
    this.#isBroken = true;
    for (const reject of this.#waiting) reject(new OutcomeUnknown(error));
    this.#waiting = new Slab();
    this.#stopWatching();
    // lmdb-js rejects every write of a commit with an error that carries a promise of the real one.
    const real = commitErrorOf(error);
    const told = real === null ? Promise.resolve(error) : Promise.race([real, nextTurn(error)]);
    if (first)
      told.then((cause) => this.#onFatal(new Error(`A write to the disk failed: ${String(cause)}`, { cause })));
  }

  /** lmdb-js leaves promises pending for ever where it cannot even begin a transaction. */
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

function commitErrorOf(error: unknown): Promise<unknown> | null {
  const found = error instanceof Error && 'commitError' in error ? error.commitError : null;
  return found instanceof Promise ? found.catch((cause: unknown) => cause) : null;
}

function nextTurn(value: unknown): Promise<unknown> {
  return new Promise((resolve) => setImmediate(resolve, value));
}
