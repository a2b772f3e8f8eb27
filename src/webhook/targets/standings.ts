import { RecentMap } from '../../domain/recent-map.ts';

/** An answer within this is a quick one. */
export const quickMs = 1_000;
/** Targets that are remembered. */
const rememberedMax = 10_000;

/** How a target took an attempt: milliseconds until it answered, or that it did not, or that nothing was sent to it. */
export type AttemptResult = number | 'no_answer' | 'not_asked';

/** How a target took the last attempt: it answered quickly, or it did not. `untried`: nothing is known of it. */
export type TargetHealth = 'quick' | 'untried' | 'slow';

/** What is remembered of targets, which are origins. The ones that were heard of longest ago are forgotten. */
export class Standings {
  readonly #known = new RecentMap<string, 'quick' | 'slow'>(rememberedMax);

  of(origin: string): TargetHealth {
    return this.#known.get(origin) ?? 'untried';
  }

  /** What an attempt came to. */
  note(origin: string, took: AttemptResult): void {
    if (took === 'not_asked') return;
    this.#known.set(origin, took !== 'no_answer' && took <= quickMs ? 'quick' : 'slow');
  }
}
