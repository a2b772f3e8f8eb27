/** Owners whose last turn is remembered. */
const rememberedMax = 10_000;

export interface TurnsOptions {
  /** Whether an owner that was not waiting goes by its last turn, and is first if it never had one; or waits until all others had one. */
  readonly newcomersFirst: boolean;
  /** What of one owner's goes first: what has waited longest, or what came last. */
  readonly ofOneOwner: 'oldest' | 'newest';
}

/** What waits for its turn. Owners take turns, however much each has waiting. */
export class Turns<T> {
  readonly #options: TurnsOptions;
  /** By owner. The one that had its turn last is last, but for those that came since. */
  readonly #waiting = new Map<string, Set<T>>();
  readonly #owners = new Map<T, string>();
  /** The numbers of owners' last turns. */
  readonly #served = new Map<string, number>();
  #turns = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** What waits already keeps its place. */
  add(one: T, owner: string): void {
    if (this.#owners.has(one)) return;
    this.#owners.set(one, owner);
    const waiting = this.#waiting.get(owner) ?? new Set();
    this.#waiting.set(owner, waiting.add(one));
  }

  delete(one: T): void {
    const owner = this.#owners.get(one);
    const waiting = owner === undefined ? undefined : this.#waiting.get(owner);
    if (owner === undefined || waiting === undefined) return;
    this.#owners.delete(one);
    waiting.delete(one);
    if (waiting.size === 0) this.#waiting.delete(owner);
  }

  /** Whether `take` would find something. */
  has(mayTake: (owner: string) => boolean): boolean {
    return this.#waiting.keys().some(mayTake);
  }

  /** Takes out what is next of an owner that may take a turn now. */
  take(mayTake: (owner: string) => boolean): T | undefined {
    const owner = this.#nextOwner(mayTake);
    const waiting = owner === undefined ? undefined : this.#waiting.get(owner);
    if (owner === undefined || waiting === undefined) return undefined;
    let next: T | undefined;
    for (const one of waiting) {
      next = one;
      if (this.#options.ofOneOwner === 'oldest') break;
    }
    if (next !== undefined) this.delete(next);
    if (this.#waiting.delete(owner)) this.#waiting.set(owner, waiting);
    this.#remember(owner);
    return next;
  }

  #nextOwner(mayTake: (owner: string) => boolean): string | undefined {
    let next: string | undefined;
    let nextServed = Number.POSITIVE_INFINITY;
    for (const owner of this.#waiting.keys()) {
      const served = this.#options.newcomersFirst ? (this.#served.get(owner) ?? 0) : 0;
      if (served >= nextServed || !mayTake(owner)) continue;
      next = owner;
      nextServed = served;
      if (served === 0) break;
    }
    return next;
  }

  #remember(owner: string): void {
    if (!this.#options.newcomersFirst) return;
    this.#turns += 1;
    this.#served.delete(owner);
    this.#served.set(owner, this.#turns);
    const [oldest] = this.#served.size > rememberedMax ? this.#served.keys() : [];
    if (oldest !== undefined) this.#served.delete(oldest);
  }
}
