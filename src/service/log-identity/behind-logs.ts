/** What is behind: the whole store, a ledger log or a master log. */
type BehindKind = 'store' | 'ledger' | 'master';

/**
 * What of a store is behind: it lacks events that were signed, or may lack them. Nothing is signed for it until then.
 * A node knows of a log that is behind once it was asked for it.
 */
export class BehindLogs {
  readonly #isCopy: boolean;
  #maySign = () => true;
  readonly #origins = { ledger: new Set<string>(), master: new Set<string>() };

  /** `isCopy`: the store was restored from a copy. */
  constructor(isCopy: boolean) {
    this.#isCopy = isCopy;
  }

  /**
   * All logs of the store are behind for this node: the store was restored from a copy, or its logs may be signed under
   * another name or key by now.
   */
  get store(): boolean {
    return this.#isCopy || !this.#maySign();
  }

  /** The store is behind for this node whenever `maySign` returns false. */
  signOnlyWhile(maySign: () => boolean): void {
    this.#maySign = maySign;
  }

  /** Learns that the log of this origin is behind, or is not any more. */
  learn(kind: 'ledger' | 'master', origin: string, isBehind: boolean): void {
    if (isBehind) this.#origins[kind].add(origin);
    else this.#origins[kind].delete(origin);
  }

  has(kind: 'ledger' | 'master', origin: string): boolean {
    return this.store || this.#origins[kind].has(origin);
  }

  /** How many of a kind are behind. */
  count(kind: BehindKind): number {
    return kind === 'store' ? Number(this.store) : this.#origins[kind].size;
  }

  get isEmpty(): boolean {
    return !this.store && this.#origins.ledger.size === 0 && this.#origins.master.size === 0;
  }
}
