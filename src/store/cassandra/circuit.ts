import { LedgerError } from '../../domain/errors.ts';

/** Statements at once (CASSANDRA_REQUESTS_MAX). Beyond it Cassandra is too slow for what is asked, and more would only take memory. */
export const defaultInFlightMax = 4_096;
/** Failures in a row, with no answer between them, after which the store counts as gone. */
const failuresToOpen = 5;
/** How long nothing is tried then, before one statement finds out. */
const openMs = 500;
/** What a refusal waits, so that who tries again at once does not keep the process busy with it. */
const refusalMs = 100;

/**
 * What an attempt says about Cassandra: it answered (even if with an error of the statement's), or it is not there; where
 * one node alone is known not to answer, which.
 */
export type Health = 'answered' | 'gone' | { readonly silentNode: string };

/**
 * Stands before every statement. While Cassandra does not answer, statements are refused, `unavailable`, without being
 * sent, but for one that finds out every half second; nothing queues up. Recovery needs no restart.
 */
export class Circuit {
  readonly #healthOf: (error: unknown) => Health;
  readonly #reachableNodes: () => number;
  readonly #silentNodes = new Set<string>();
  readonly #inFlightMax: number;
  #inFlight = 0;
  #failures = 0;
  #state: 'closed' | 'open' | 'probing' = 'closed';
  #isShut = false;

  /** `reachableNodes`: how many nodes there are connections to. `inFlightMax`: statements at once. */
  constructor(
    healthOf: (error: unknown) => Health,
    reachableNodes: () => number,
    inFlightMax: number = defaultInFlightMax,
  ) {
    this.#inFlightMax = inFlightMax;
    this.#healthOf = healthOf;
    this.#reachableNodes = reachableNodes;
  }

  /** Statements under way. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Runs one statement, at most `deadlineMs`. LedgerError `unavailable` or `overloaded` where it was not sent; whatever
   * else is thrown came from the attempt.
   */
  async run<T>(deadlineMs: number, attempt: () => Promise<T>): Promise<T> {
    if (this.#inFlight >= this.#inFlightMax)
      throw new LedgerError('overloaded', 'The store has too much to do; nothing was sent to it, retry in a moment.', {
        bound: 'CASSANDRA_REQUESTS_MAX',
      });
    this.#inFlight++;
    try {
      if (this.#isShut || this.#state === 'probing' || this.#state === 'open') return await this.#refuse();
      if (this.#reachableNodes() === 0) return await this.#refuse();
      const probes = this.#failures >= failuresToOpen;
      if (probes) this.#state = 'probing';
      try {
        const result = await withDeadline(deadlineMs, attempt());
        this.#answered();
        return result;
      } catch (error) {
        const health = this.#healthOf(error);
        if (health === 'answered') this.#answered();
        else this.#failed(health);
        throw error;
      }
    } finally {
      this.#inFlight--;
    }
  }

  /** Nothing is sent any more. */
  shut(): void {
    this.#isShut = true;
  }

  #answered(): void {
    this.#failures = 0;
    this.#silentNodes.clear();
    this.#state = 'closed';
  }

  #failed(health: Exclude<Health, 'answered'>): void {
    if (health !== 'gone') this.#silentNodes.add(health.silentNode);
    // As long as other nodes may answer, one that does not is no outage, however many wait for it.
    const mayAnswer = health !== 'gone' && this.#silentNodes.size < this.#reachableNodes();
    if (mayAnswer && this.#state !== 'probing') return;
    this.#failures++;
    if (this.#failures < failuresToOpen || this.#state === 'open') return;
    this.#state = 'open';
    setTimeout(() => {
      if (this.#state === 'open') this.#state = 'closed';
    }, openMs).unref();
  }

  async #refuse(): Promise<never> {
    await new Promise((resolve) => setTimeout(resolve, refusalMs));
    throw new LedgerError('unavailable', 'The store cannot be reached; nothing was written.');
  }
}

/** Thrown where an attempt took longer than it may. It may still be carried out. */
export class DeadlinePassed extends Error {
  constructor(deadlineMs: number) {
    super(`no answer within ${deadlineMs} ms`);
    this.name = 'DeadlinePassed';
  }
}

async function withDeadline<T>(deadlineMs: number, attempt: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlinePassed(deadlineMs)), deadlineMs);
  });
  try {
    return await Promise.race([attempt, passed]);
  } finally {
    clearTimeout(timer);
  }
}
