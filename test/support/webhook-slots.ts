import { Targets } from '../../src/webhooks/send/targets.ts';
import { ManualClock } from './clock.ts';

export interface Lane {
  readonly owner: string;
  readonly origin: string;
}

/** Slots of sending under a clock that the test moves; `began` is told who has one. */
export function slots() {
  const clock = new ManualClock(0);
  const sending: { lane: Lane; atMs: number }[] = [];
  const given = () => {
    for (let turn = targets.turn(); turn !== null; turn = targets.turn()) {
      const lane = targets.take(turn);
      sending.push({ lane, atMs: clock.now() });
      began(lane);
    }
  };
  let began = (_lane: Lane): void => {};
  const targets = new Targets<Lane>({ clock, ownerOf: ({ owner }) => owner, freed: given });
  const ready = (owner: string, origin: string): Lane => {
    const lane = { owner, origin };
    targets.ready(origin, lane);
    return lane;
  };
  const done = (lane: Lane, took: number | 'no_answer') => {
    targets.done(lane, took);
    given();
  };
  /** Makes a target known as one that answers quickly. */
  const prove = (owner: string, origin: string) => {
    ready(owner, origin);
    given();
    for (const { lane } of sending.splice(0)) targets.done(lane, 5);
  };
  /** Each attempt at these lasts for so long, fails, and the next one of its lane is ready. */
  const dead = (isDead: (lane: Lane) => boolean) => {
    began = (lane) => {
      if (!isDead(lane)) return;
      clock.after(10_000, () => {
        targets.done(lane, 'no_answer');
        targets.ready(lane.origin, lane);
        given();
      });
    };
  };
  const countOf = (owner: string) => sending.filter(({ lane }) => lane.owner === owner).length;
  return { clock, targets, sending, given, ready, done, prove, dead, countOf };
}
