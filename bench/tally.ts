import { LatencyHistogram } from './latency.ts';
import type { AnswerKind, Expected, LoadResult, SteadyLoad } from './load-job.ts';

interface Mark {
  readonly accepted: number;
  readonly answered: number;
  readonly atMs: number;
}

/** Counts answers until there are as many as there should be. */
export class Tally {
  readonly finished: Promise<LoadResult>;
  readonly #expected: Expected;
  readonly #latencies = new LatencyHistogram();
  readonly #counts = { accepted: 0, refused: 0, failed: 0 };
  readonly #startedMs = performance.now();
  readonly #cpuBefore = process.cpuUsage();
  #firstFailure: string | null = null;
  #answered = 0;
  /** Since when, and until when, as many were open as may be. */
  #filled: Mark | null = null;
  #drained: Mark | null = null;
  #finish: (result: LoadResult) => void = () => {};

  constructor(expected: Expected) {
    this.#expected = expected;
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** All events of a signer are sent: from here on fewer are open. */
  draining(): void {
    this.#drained ??= this.#mark(performance.now());
  }

  /** `sentMs` by performance.now(). */
  answer(kind: AnswerKind, sentMs: number, failure?: () => string): void {
    const now = performance.now();
    this.#latencies.record((now - sentMs) * 1_000);
    this.#counts[kind] += 1;
    if (kind === 'failed') this.#firstFailure ??= failure?.() ?? null;
    this.#answered += 1;
    // What was open from the first moment on has been answered: the server has its work in all its stages.
    if (this.#answered === this.#expected.openMax) this.#filled = this.#mark(now);
    if (this.#answered < this.#expected.answers) return;
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    const whole = { accepted: this.#counts.accepted, seconds: (now - this.#startedMs) / 1_000 };
    this.#finish({
      ...this.#counts,
      firstFailure: this.#firstFailure,
      seconds: whole.seconds,
      steady: this.#steady() ?? whole,
      latencyCounts: this.#latencies.counts(),
      cpuUs: user + system,
    });
  }

  /** null: too short to have been full, or full for less than half of all answers, which says less than the whole. */
  #steady(): SteadyLoad | null {
    const [from, to] = [this.#filled, this.#drained];
    if (from === null || to === null || to.accepted <= from.accepted) return null;
    if (to.answered - from.answered < this.#expected.answers / 2) return null;
    return { accepted: to.accepted - from.accepted, seconds: (to.atMs - from.atMs) / 1_000 };
  }

  #mark(atMs: number): Mark {
    return { accepted: this.#counts.accepted, answered: this.#answered, atMs };
  }
}
