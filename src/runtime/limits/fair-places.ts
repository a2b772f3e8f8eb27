export interface PlaceBounds {
  readonly perCaller: number;
  readonly total: number;
  /** Requests of all callers that may wait: any number if it is left out. */
  readonly waiting?: number;
}

const tooManyWait = (): Error => new Error('too many requests wait for a place');
const calledOff = (): Error => new Error('the request for a place was called off');

interface Waiting {
  readonly give: () => void;
  readonly refuse: (error: Error) => void;
}

/**
 * A bounded number of places. Waiting callers get them in turn, however much work each has waiting.
 *
 * Invariant: each `take` that returned null or resolved is followed by exactly one `leave` of the same caller.
 */
export class FairPlaces {
  readonly #bounds: PlaceBounds;
  readonly #overloaded: () => Error;
  readonly #held = new Map<string, number>();
  /** In the order of their next place. No list is empty. */
  readonly #waiting = new Map<string, Waiting[]>();
  #heldCount = 0;
  #waitingCount = 0;

  /** The error for work that finds no room to wait. */
  constructor(bounds: PlaceBounds, overloaded = tooManyWait) {
    this.#bounds = bounds;
    this.#overloaded = overloaded;
  }

  get held(): number {
    return this.#heldCount;
  }

  get waiting(): number {
    return this.#waitingCount;
  }

  /**
   * Returns null if a place is free, otherwise a promise of one. It rejects with `ended()` once the signal aborts. If
   * too many wait, the newest request of the caller with the most is refused with `overloaded()`: if that is this
   * caller, take itself throws.
   */
  take(caller: string, signal?: AbortSignal, ended = calledOff): Promise<void> | null {
    if (signal?.aborted === true) throw ended();
    if (this.#mayHave(caller) && !this.#waiting.has(caller)) {
      this.#give(caller);
      return null;
    }
    this.#makeRoom(caller);
    return new Promise((resolve, reject) => {
      const finish = (): void => signal?.removeEventListener('abort', leave);
      const waiting: Waiting = {
        give: () => {
          finish();
          resolve();
        },
        refuse: (error) => {
          finish();
          reject(error);
        },
      };
      const leave = (): void => {
        this.#forget(caller, waiting);
        waiting.refuse(ended());
      };
      signal?.addEventListener('abort', leave);
      const own = this.#waiting.get(caller);
      if (own === undefined) this.#waiting.set(caller, [waiting]);
      else own.push(waiting);
      this.#waitingCount += 1;
    });
  }

  /** The next waiting caller gets the place. */
  leave(caller: string): void {
    const held = (this.#held.get(caller) ?? 0) - 1;
    if (held > 0) this.#held.set(caller, held);
    else this.#held.delete(caller);
    this.#heldCount -= 1;
    this.#serve();
  }

  #mayHave(caller: string): boolean {
    return this.#heldCount < this.#bounds.total && (this.#held.get(caller) ?? 0) < this.#bounds.perCaller;
  }

  #give(caller: string): void {
    this.#held.set(caller, (this.#held.get(caller) ?? 0) + 1);
    this.#heldCount += 1;
  }

  #serve(): void {
    // Few callers are skipped: those with all their places.
    for (const [caller, own] of this.#waiting) {
      if (this.#heldCount >= this.#bounds.total) return;
      if (!this.#mayHave(caller)) continue;
      const [next] = own;
      if (next === undefined) continue;
      this.#waiting.delete(caller);
      if (own.length > 1) this.#waiting.set(caller, own);
      own.shift();
      this.#waitingCount -= 1;
      this.#give(caller);
      next.give();
    }
  }

  #makeRoom(caller: string): void {
    const { waiting = Number.POSITIVE_INFINITY } = this.#bounds;
    if (this.#waitingCount < waiting) return;
    let [most, count] = [caller, this.#waiting.get(caller)?.length ?? 0];
    for (const [other, { length }] of this.#waiting) if (length > count + 1) [most, count] = [other, length];
    const last = most === caller ? undefined : this.#waiting.get(most)?.at(-1);
    if (last === undefined) throw this.#overloaded();
    this.#forget(most, last);
    last.refuse(this.#overloaded());
  }

  #forget(caller: string, waiting: Waiting): void {
    const own = this.#waiting.get(caller);
    const at = own?.indexOf(waiting) ?? -1;
    if (own === undefined || at < 0) return;
    own.splice(at, 1);
    this.#waitingCount -= 1;
    if (own.length === 0) this.#waiting.delete(caller);
  }
}
