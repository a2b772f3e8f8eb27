import { LedgerError } from '../../domain/errors.ts';

/** Waiting for one key (CASSANDRA_WRITES_MAX); callers bound themselves far below. */
export const defaultWaitingMax = 4_096;

type Start = () => void;

interface Queue {
  readonly takeovers: Start[];
  readonly writes: Start[];
  lastWasWrite: boolean;
}

/**
 * One conditional write at a time for each key: several under way on one partition get in each other's way at
 * Cassandra, time out, and are applied later. Across processes Paxos decides.
 *
 * A write may overtake the claims that wait, once: a claim that is followed at once by another would never come to
 * append. So may the claims that wait overtake the next write.
 */
export class KeyedMutex {
  readonly #queues = new Map<string, Queue>();
  readonly #waitingMax: number;

  constructor(waitingMax: number = defaultWaitingMax) {
    this.#waitingMax = waitingMax;
  }

  /** `overloaded` where too many wait. */
  async take<T>(key: string, kind: 'write' | 'takeover', work: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, { takeovers: [], writes: [], lastWasWrite: kind === 'write' });
    else await waitIn(queue, kind, this.#waitingMax);
    try {
      return await work();
    } finally {
      this.#passOn(key);
    }
  }

  /** Whether somebody waits for the one whose turn it is. */
  hasWaiting(key: string): boolean {
    const queue = this.#queues.get(key);
    return queue !== undefined && queue.takeovers.length + queue.writes.length > 0;
  }

  #passOn(key: string): void {
    const queue = this.#queues.get(key);
    if (queue === undefined) return;
    if (queue.takeovers.length + queue.writes.length === 0) {
      this.#queues.delete(key);
      return;
    }
    // A turn of the event loop later: whoever was answered just now may ask again first.
    setImmediate(() => {
      const writeNext = queue.takeovers.length === 0 || (queue.writes.length > 0 && !queue.lastWasWrite);
      queue.lastWasWrite = writeNext;
      const next = writeNext ? queue.writes.shift() : queue.takeovers.shift();
      next?.();
    });
  }
}

function waitIn(queue: Queue, kind: 'write' | 'takeover', waitingMax: number): Promise<void> {
  if (queue.takeovers.length + queue.writes.length >= waitingMax)
    throw new LedgerError(
      'overloaded',
      'Too many writes wait for this object; nothing was written, retry in a moment.',
      {
        bound: 'CASSANDRA_WRITES_MAX',
      },
    );
  const line = kind === 'write' ? queue.writes : queue.takeovers;
  return new Promise((resolve) => line.push(resolve));
}
