import { LedgerError } from '../domain/errors.ts';

/** `rare`: claims of a ledger, which come among its appends, and revocations of keys, among other changes. */
type Kind = 'write' | 'rare';

interface Queue {
  readonly rare: (() => void)[];
  readonly write: (() => void)[];
  lastWasWrite: boolean;
}

interface WaitingBound {
  readonly max: number;
  /** The variable that sets it, which refusals name. */
  readonly bound: string;
}

interface TakeOptions {
  /** Aborts when the call of the operation ends. An operation that has not begun by then gives up its place. */
  readonly signal?: AbortSignal | undefined;
  /** Waits however many others do. */
  readonly isUnbounded?: boolean;
}

/**
 * Runs one operation a key at a time, each kind in the order of the calls. The next one starts in a later iteration of
 * the event loop, so that the caller that was just answered can queue its next operation first.
 *
 * The kinds alternate while both wait, so that rare operations wait for one write, however many there are. A write may
 * overtake waiting claims, because the caller of a claim must be able to append before the next claim fences it.
 */
export class KeyedMutex {
  readonly #queues = new Map<string, Queue>();
  readonly #waiting: WaitingBound | null;

  /** `waiting`: null if the callers bound by themselves how many wait. */
  constructor(waiting: WaitingBound | null) {
    this.#waiting = waiting;
  }

  /**
   * Runs `work` under the mutex. Throws LedgerError `overloaded` if too many operations wait for the key, and
   * `unavailable` if its call ends before `work` begins.
   */
  async take<T>(key: string, kind: Kind, work: () => Promise<T>, options: TakeOptions = {}): Promise<T> {
    checkNotEnded(options.signal);
    const queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, { rare: [], write: [], lastWasWrite: kind === 'write' });
    else await this.#wait(queue, kind, options);
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

  #wait(queue: Queue, kind: Kind, { signal, isUnbounded = false }: TakeOptions): Promise<void> {
    if (this.#waiting !== null && !isUnbounded && waitingIn(queue) >= this.#waiting.max) {
      const message = 'Too many writes wait for this object; nothing was written, retry in a moment.';
      throw new LedgerError('overloaded', message, { bound: this.#waiting.bound });
    }
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        queue[kind].splice(queue[kind].indexOf(begin), 1);
        reject(callEnded());
      };
      signal?.addEventListener('abort', leave, { once: true });
      queue[kind].push(begin);
    });
  }

  #passOn(key: string): void {
    const queue = this.#queues.get(key);
    if (queue === undefined || waitingIn(queue) === 0) {
      this.#queues.delete(key);
      return;
    }
    setImmediate(() => {
      // All may have left meanwhile.
      if (waitingIn(queue) === 0) {
        this.#queues.delete(key);
        return;
      }
      const writeNext = queue.rare.length === 0 || (queue.write.length > 0 && !queue.lastWasWrite);
      queue.lastWasWrite = writeNext;
      queue[writeNext ? 'write' : 'rare'].shift()?.();
    });
  }
}

function waitingIn(queue: Queue): number {
  return queue.rare.length + queue.write.length;
}

/** Throws `unavailable` once the signal of a call has aborted: to be called before the call writes anything. */
export function checkNotEnded(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw callEnded();
}

function callEnded(): LedgerError {
  return new LedgerError('unavailable', 'The call ended before its write began; nothing was written, retry.');
}
