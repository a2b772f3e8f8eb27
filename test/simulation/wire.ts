import type { Life } from './life.ts';
import type { SeededRandom } from './random.ts';
import type { SimulatedTime } from './time.ts';

/**
 * What becomes of a request. `lost`: it never arrives. `unanswered`: it is carried out, and the answer is lost. `late`:
 * the same, long after its sender gave up.
 */
export type Fate = 'answered' | 'lost' | 'unanswered' | 'late';

/** How a connection does, from a node to something that it asks. */
export interface WireState {
  cut: boolean;
  /** Chance of a request to meet another fate than to be answered. */
  faultRate: number;
  /** Added to each way. */
  slowMs: number;
  /** Fates of the next requests, before chance is asked. */
  readonly next: PlannedFate[];
  /** Called when a request meets the fault. */
  met: () => void;
}

interface PlannedFate {
  readonly fate: Fate;
  readonly met: () => void;
}

export function healthyWire(): WireState {
  return { cut: false, faultRate: 0.003, slowMs: 0, next: [], met: () => {} };
}

export interface WireParts {
  readonly time: SimulatedTime;
  readonly random: SeededRandom;
  readonly state: WireState;
  /** Who asks. */
  readonly life: Life;
  readonly timeoutMs: number;
  /** By how much a late answer exceeds its sender's timeout at most, ms. 600 if left out. */
  readonly lateMaxMs?: number;
}

/** Has `work` done at the other end and its answer delivered. `timedOut` makes the error for one that does not come. */
export function request<T>(parts: WireParts, work: (fate: Fate) => T | Promise<T>, timedOut: () => Error): Promise<T> {
  const { time, random, state, life, timeoutMs, lateMaxMs = 600 } = parts;
  const fate = fateOf(state, random);
  return new Promise((resolve, reject) => {
    const stopWaiting = time.after(timeoutMs, () => life.deliver(() => reject(timedOut())));
    const oneWayMs = () => random.between(1, 3) + (state.slowMs === 0 ? 0 : random.between(0, state.slowMs));
    if (fate !== 'lost') {
      const arrivesMs = fate === 'late' ? timeoutMs + random.between(0, lateMaxMs) : oneWayMs();
      time.after(arrivesMs, () => {
        // An error of the other end is an answer.
        const answer = (deliver: () => void) => {
          if (fate !== 'answered') return;
          const answered = () => {
            stopWaiting();
            deliver();
          };
          time.after(oneWayMs(), () => life.deliver(answered));
        };
        Promise.resolve()
          .then(() => work(fate))
          .then(
            (value) => answer(() => resolve(value)),
            (error) => answer(() => reject(error)),
          );
      });
    }
  });
}

function fateOf(state: WireState, random: SeededRandom): Fate {
  const next = state.next.shift();
  if (next !== undefined) {
    next.met();
    return next.fate;
  }
  const strikes = !state.cut && random.chance(state.faultRate);
  if (state.cut || strikes || state.slowMs > 0) state.met();
  if (state.cut) return 'lost';
  if (!strikes) return 'answered';
  return random.pick(['lost', 'unanswered', 'unanswered', 'late'] as const);
}
