import { LedgerError } from '../../domain/errors.ts';

/** Default of CASSANDRA_WRITES_MAX, operations that may wait for one key. Callers stay far below. */
export const defaultWaitingMax = 4_096;

type Start = () => void;

interface Queue {
  readonly takeovers: Start[];
  readonly writes: Start[];
  lastWasWrite: boolean;
}

/**
 * Runs one conditional write a key at a time. Concurrent conditional writes on one partition hinder each other in
 * Cassandra, time out, and are applied later. Between processes Paxos decides.
 *
 * Appends (`write`) and claims (`takeover`) alternate while both wait. A write may overtake waiting claims, because the
 * caller of a claim must be able to append before the next claim fences it. Then a claim may overtake waiting writes.
 */
export class KeyedMutex {
  readonly #queues = new Map<string, Queue>();
  readonly #waitingMax: number;

  constructor(waitingMax: number = defaultWaitingMax) {
    this.#waitingMax = waitingMax;
  }

  /** Runs `work` under the mutex. Throws LedgerError `overloaded` if too many operations wait for the key. */
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

  /** Whether operations wait for the one that runs now. */
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
    // One turn of the event loop later, so that the caller that was just answered can queue its next operation first.
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
