import type { Clock } from '../../runtime/clock/clock.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { RecordWatch, recordTrustMs } from '../records/record-watch.ts';
import type { LogIdentity } from './log-identity.ts';
import { readLog } from './log-record.ts';

/** How long after a change of the log's record a node may go on signing as before, s. */
export const signsOnForS = recordTrustMs / 1_000;

interface LogWatchParts {
  readonly records: RecordStore;
  readonly logIdentity: LogIdentity;
  readonly clock: Clock;
  readonly warn: (what: string, error?: unknown) => void;
}

/**
 * Checks periodically whether the store's logs are still signed under this node's name and key. The commands that
 * change them need all nodes stopped, and may not see one: this node signs nothing any more then.
 */
export class LogWatch {
  readonly #parts: LogWatchParts;
  readonly #watch: RecordWatch;
  #trustedUntilMs = Number.NEGATIVE_INFINITY;
  #isReplaced = false;

  constructor(parts: LogWatchParts) {
    this.#parts = parts;
    this.#watch = new RecordWatch({
      clock: parts.clock,
      look: (trustedUntilMs) => this.#look(trustedUntilMs),
      failed: (error) => parts.warn('looking at the record of the log failed', error),
    });
  }

  /** Rejects if the first check fails. From then on the node signs only while its name and key are the store's. */
  async start(): Promise<void> {
    await this.#watch.start();
    this.#parts.logIdentity.behind.signOnlyWhile(() => this.#isCurrent);
  }

  stop(): void {
    this.#watch.stop();
  }

  /** Compared with the clock at each call: a process that was paused trusts no old look. */
  get #isCurrent(): boolean {
    return !this.#isReplaced && this.#parts.clock.now() <= this.#trustedUntilMs;
  }

  async #look(trustedUntilMs: number): Promise<void> {
    const { records, logIdentity, warn } = this.#parts;
    const { log } = await readLog(records);
    this.#trustedUntilMs = trustedUntilMs;
    const isReplaced = !logIdentity.isOf(log);
    if (isReplaced && !this.#isReplaced) warn(replaced);
    this.#isReplaced = isReplaced;
  }
}

const replaced =
  'the logs of this store have another name or key now, or are those of another copy, so this node signs no checkpoint any more: stop it, and start it with the LOG_ORIGIN and LOG_KEY_FILE of the other nodes';
