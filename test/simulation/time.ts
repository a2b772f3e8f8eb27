interface Occurrence {
  readonly at: number;
  /** Of what happens at the same time, what was planned first comes first. */
  readonly order: number;
  run: (() => void) | null;
}

const realImmediate = globalThis.setImmediate;
/** So many occurrences at most without an iteration of the event loop, which a test's own time limit needs. */
const occurrencesPerIteration = 1_000;

/**
 * Resolves when everything that waits for nothing but promises has gone on: called from one, Node takes the next tick
 * after all of them.
 */
function settled(): Promise<void> {
  return new Promise((resolve) => void process.nextTick(resolve));
}

function nextIteration(): Promise<void> {
  return new Promise((resolve) => void realImmediate(resolve));
}

/**
 * Time that passes only from one planned occurrence to the next. Milliseconds since 1970. Between two of them
 * everything that can go on does, so that a run follows from its plan alone.
 */
export class SimulatedTime {
  #now: number;
  #planned = 0;
  readonly #heap: Occurrence[] = [];

  constructor(startMs: number) {
    this.#now = startMs;
  }

  get now(): number {
    return this.#now;
  }

  /** Occurrences planned so far. */
  get planned(): number {
    return this.#planned;
  }

  after(delayMs: number, run: () => void): () => void {
    const occurrence: Occurrence = { at: this.#now + Math.max(0, delayMs), order: this.#planned++, run };
    this.#push(occurrence);
    return () => {
      occurrence.run = null;
    };
  }

  /** Lets time pass until `done`, or to `untilMs`. True if it was done. */
  async pass(untilMs: number, done: () => boolean): Promise<boolean> {
    await nextIteration();
    for (let passed = 1; !done(); passed++) {
      const next = this.#heap[0];
      if (next === undefined || next.at > untilMs) {
        this.#now = Math.max(this.#now, untilMs);
        return false;
      }
      this.#pop();
      if (next.run === null) continue;
      this.#now = Math.max(this.#now, next.at);
      next.run();
      await (passed % occurrencesPerIteration === 0 ? nextIteration() : settled());
    }
    return true;
  }

  /**
   * Puts this time in the place of the process's timers, for code that asks for them directly. Answers how to take it
   * back.
   */
  install(): () => void {
    const real = { setTimeout: globalThis.setTimeout, setImmediate: globalThis.setImmediate };
    const timer = (cancel: () => void) => ({ unref: () => timer(cancel), [Symbol.dispose]: cancel });
    const plan = (delayMs: number, run: () => void) => timer(this.after(delayMs, run));
    Object.assign(globalThis, {
      setTimeout: (run: () => void, delayMs = 0) => plan(delayMs, run),
      setImmediate: (run: () => void) => plan(0, run),
    });
    return () => void Object.assign(globalThis, real);
  }

  #push(occurrence: Occurrence): void {
    const heap = this.#heap;
    let at = heap.push(occurrence) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, occurrence)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = occurrence;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      if (left === undefined) break;
      if (right !== undefined && isBefore(right, left)) child++;
      const below = heap[child];
      if (below === undefined || isBefore(last, below)) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Occurrence, b: Occurrence): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
