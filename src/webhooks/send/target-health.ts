import { RecentMap } from '../../runtime/collections/recent-map.ts';

export const quickMs = 1_000;
const rememberedMax = 10_000;

/** The result of an attempt: ms until the answer, `no_answer`, or `not_asked` if nothing was sent. */
export type AttemptResult = number | 'no_answer' | 'not_asked';

/** `slow`: the last answer came late or not at all. `untried`: nothing is known of the target. */
export type TargetHealth = 'quick' | 'untried' | 'slow';

/** By origin. */
export class TargetHealths {
  readonly #known = new RecentMap<string, 'quick' | 'slow'>(rememberedMax);

  of(origin: string): TargetHealth {
    return this.#known.get(origin) ?? 'untried';
  }

  note(origin: string, result: AttemptResult): void {
    if (result === 'not_asked') return;
    this.#known.set(origin, result !== 'no_answer' && result <= quickMs ? 'quick' : 'slow');
  }
}
