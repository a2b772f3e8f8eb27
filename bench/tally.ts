import { LatencyHistogram } from './latency.ts';
import type { LoadResult, Verdict } from './load-job.ts';

/** Counts answers until there are as many as there should be. */
export class Tally {
  readonly finished: Promise<LoadResult>;
  readonly #expected: number;
  readonly #latencies = new LatencyHistogram();
  readonly #counts = { accepted: 0, refused: 0, failed: 0 };
  readonly #startedMs = performance.now();
  #firstFailure: string | null = null;
  #answered = 0;
  #finish: (result: LoadResult) => void = () => {};

  constructor(expected: number) {
    this.#expected = expected;
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** `sentMs` by performance.now(). */
  answer(verdict: Verdict, sentMs: number, failure?: () => string): void {
    const now = performance.now();
    this.#latencies.record((now - sentMs) * 1_000);
    this.#counts[verdict] += 1;
    if (verdict === 'failed') this.#firstFailure ??= failure?.() ?? null;
    this.#answered += 1;
    if (this.#answered < this.#expected) return;
    const { user, system } = process.cpuUsage();
    this.#finish({
      ...this.#counts,
      firstFailure: this.#firstFailure,
      seconds: (now - this.#startedMs) / 1_000,
      latencyCounts: this.#latencies.counts(),
      cpuUs: user + system,
    });
  }
}
