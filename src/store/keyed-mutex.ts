import { LedgerError } from '../domain/errors.ts';

type Kind = 'write' | 'claim';

interface Queue {
  readonly claim: (() => void)[];
  readonly write: (() => void)[];
  lastWasWrite: boolean;
}

interface WaitingBound {
  readonly max: number;
  /** The variable that sets it, which refusals name. */
  readonly bound: string;
}

/**
 * Runs one operation a key at a time, each kind in the order of the calls. The next one starts in a later iteration of
 * the event loop, so that the caller that was just answered can queue its next operation first.
 *
 * Writes and claims alternate while both wait. A write may overtake waiting claims, because the caller of a claim must
 * be able to append before the next claim fences it. Then a claim may overtake waiting writes.
 */
export class KeyedMutex {
  readonly #queues = new Map<string, Queue>();
  readonly #waiting: WaitingBound | null;

  /** `waiting`: null if the callers bound by themselves how many wait. */
  constructor(waiting: WaitingBound | null) {
    this.#waiting = waiting;
  }

  /** Runs `work` under the mutex. Throws LedgerError `overloaded` if too many operations wait for the key. */
  async take<T>(key: string, kind: Kind, work: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, { claim: [], write: [], lastWasWrite: kind === 'write' });
    else await this.#wait(queue, kind);
    try {
      return await work();
    } finally {
      this.#passOn(key);
    }
  }

  hasWaiting(key: string): boolean {
    const queue = this.#queues.get(key);
    return queue !== undefined && waitingIn(queue) > 0;
  }

  #wait(queue: Queue, kind: Kind): Promise<void> {
    if (this.#waiting === null || waitingIn(queue) < this.#waiting.max)
      return new Promise((resolve) => queue[kind].push(resolve));
    const message = 'Too many writes wait for this object; nothing was written, retry in a moment.';
    throw new LedgerError('overloaded', message, { bound: this.#waiting.bound });
  }

  #passOn(key: string): void {
    const queue = this.#queues.get(key);
    if (queue === undefined || waitingIn(queue) === 0) {
      this.#queues.delete(key);
      return;
    }
    setImmediate(() => {
      const writeNext = queue.claim.length === 0 || (queue.write.length > 0 && !queue.lastWasWrite);
      queue.lastWasWrite = writeNext;
      queue[writeNext ? 'write' : 'claim'].shift()?.();
    });
  }
}

function waitingIn(queue: Queue): number {
  return queue.claim.length + queue.write.length;
}
