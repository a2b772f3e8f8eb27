import { LedgerError } from '../../../domain/errors.ts';

/** Default of CASSANDRA_REQUESTS_MAX, statements in flight. More would only take memory. */
export const defaultInFlightMax = 4_096;
const failuresToOpen = 5;
const openMs = 500;
/** So that callers that retry at once do not keep the process busy. */
const refusalMs = 100;

/**
 * What an attempt shows about Cassandra. `answered`: it answered, even if with an error of the statement. `gone`: it is
 * not available. `silentNode`: this one node did not answer. `unknown`: nothing; it failed in this process.
 */
export type Health = 'answered' | 'gone' | 'unknown' | { readonly silentNode: string };

/**
 * A circuit breaker around every statement. While Cassandra does not answer, statements are refused with `unavailable`
 * without being sent, so that nothing queues up. Every half second one statement is sent as a probe.
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

  /** `reachableNodes` returns how many nodes are connected. */
  constructor(
    healthOf: (error: unknown) => Health,
    reachableNodes: () => number,
    inFlightMax: number = defaultInFlightMax,
  ) {
    this.#inFlightMax = inFlightMax;
    this.#healthOf = healthOf;
    this.#reachableNodes = reachableNodes;
  }

  /**
   * Runs one statement. Throws LedgerError `unavailable` or `overloaded` if the statement was not sent, DeadlinePassed
   * if it takes longer than `deadlineMs`, and what the attempt throws.
   */
  async run<T>(deadlineMs: number, attempt: () => Promise<T>): Promise<T> {
    if (this.#inFlight >= this.#inFlightMax)
      throw new LedgerError('overloaded', 'The store has too much to do; nothing was sent to it, retry in a moment.', {
        bound: 'CASSANDRA_REQUESTS_MAX',
      });
    this.#inFlight++;
    try {
      if (this.#isShut || this.#state !== 'closed' || this.#reachableNodes() === 0) return await this.#refuse();
      const isProbe = this.#failures >= failuresToOpen;
      if (isProbe) this.#state = 'probing';
      try {
        const result = await withDeadline(deadlineMs, attempt());
        this.#answered();
        return result;
      } catch (error) {
        const health = this.#healthOf(error);
        if (health === 'answered') this.#answered();
        else if (health !== 'unknown') this.#failed(health);
        else if (isProbe) this.#probeShowedNothing();
        throw error;
      }
    } finally {
      this.#inFlight--;
    }
  }

  shut(): void {
    this.#isShut = true;
  }

  #answered(): void {
    this.#failures = 0;
    this.#silentNodes.clear();
    this.#state = 'closed';
  }

  #failed(health: Exclude<Health, 'answered' | 'unknown'>): void {
    if (health !== 'gone') this.#silentNodes.add(health.silentNode);
    // A silent node is no outage while other nodes may answer, however many statements wait for the silent node.
    const mayAnswer = health !== 'gone' && this.#silentNodes.size < this.#reachableNodes();
    if (mayAnswer && this.#state !== 'probing') return;
    this.#failures++;
    if (this.#failures < failuresToOpen || this.#state === 'open') return;
    this.#state = 'open';
    setTimeout(() => {
      if (this.#state === 'open') this.#state = 'closed';
    }, openMs).unref();
  }

  /** The next statement is a probe, unless another statement in flight has opened the circuit meanwhile. */
  #probeShowedNothing(): void {
    if (this.#state === 'probing') this.#state = 'closed';
  }

  async #refuse(): Promise<never> {
    await new Promise((resolve) => setTimeout(resolve, refusalMs));
    throw new LedgerError('unavailable', 'The store cannot be reached; nothing was written.');
  }
}

/** An attempt took longer than its deadline. The statement may still be executed. */
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
