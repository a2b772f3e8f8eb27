import type { Clock } from '../../runtime/clock/clock.ts';
import { RoundRobin } from '../../runtime/collections/round-robin.ts';
import { attemptTimeoutMs } from '../post/http-post.ts';
import { type AttemptResult, type TargetHealth, TargetHealths } from './target-health.ts';

/** Concurrent attempts of a node. */
export const attemptsMax = 64;
/** Concurrent attempts at one target (an origin: scheme, host and port). */
export const attemptsPerTargetMax = 4;
/** The result of the first attempt decides whether an untried target gets more. */
export const attemptsPerUntriedMax = 1;
/** Concurrent attempts at all quick targets, at all untried targets, and at all slow targets. */
export const attemptsAtQuickMax = 56;
export const attemptsAtUntriedMax = 28;
export const attemptsAtSlowMax = 20;
/** The pause between the last slots of untried and of slow targets. */
export const apartAtUntriedMs = 500;
export const apartAtSlowMs = 1_000;

/** Returns how many slots are given `apartMs` apart: as many as fit into the time of one attempt. */
export function givenApart(apartMs: number): number {
  return Math.ceil(attemptTimeoutMs / apartMs);
}

interface Queue {
  readonly owner: string;
  readonly origin: string;
}

interface Target<Q> {
  readonly origin: string;
  /** Queues that have something to send and are not sending, by owner. */
  readonly queues: RoundRobin<Q>;
  group: Group<Q>;
  active: number;
}

/** The targets of one health, with their slots. */
interface Group<Q> {
  readonly health: TargetHealth;
  /** Open are targets with fewer attempts than their limit. */
  readonly targets: RoundRobin<Target<Q>>;
  readonly max: number;
  /** Slots that are given without a pause. The others are given `apartMs` apart. */
  readonly atOnce: number;
  readonly apartMs: number;
  active: number;
  isPausing: boolean;
}

interface Next<Q> {
  readonly owner: string;
  readonly target: Target<Q>;
}

interface Attempt<Q> {
  readonly owner: string;
  readonly target: Target<Q>;
  /** The group of the target when the attempt began. */
  readonly group: Group<Q>;
}

interface FairQueueParts {
  readonly clock: Clock;
  /** Called when `next` may find an attempt again without any other call. */
  freed(): void;
}

/**
 * Decides which queue sends next: round-robin among the healths (quick, untried, slow), among the owners that have
 * something to send to a target of this health, and among the owners at the chosen target. So no owner delays another
 * one by the number of its queues or targets.
 *
 * At quick targets an owner may hold at most as many slots as remain free. So others can still send when all targets of
 * one owner stop answering at once.
 *
 * An attempt may last until its timeout. When all slots given apart are held, the first one has been given back. So a
 * slot for untried, and one for slow targets, is given regularly, even if no attempt is ever answered.
 *
 * Of one owner's untried targets the newest is first: those that wait may be as dead as those that they wait behind.
 */
export class FairQueue<Q extends Queue> {
  readonly #parts: FairQueueParts;
  readonly #targets = new Map<string, Target<Q>>();
  readonly #healths = new TargetHealths();
  readonly #groups: Readonly<Record<TargetHealth, Group<Q>>> = {
    quick: newGroup('quick', attemptsAtQuickMax, 0),
    untried: newGroup('untried', attemptsAtUntriedMax, apartAtUntriedMs),
    slow: newGroup('slow', attemptsAtSlowMax, apartAtSlowMs),
  };
  readonly #order = Object.values(this.#groups);
  readonly #attempts = new Map<Q, Attempt<Q>>();

  constructor(parts: FairQueueParts) {
    this.#parts = parts;
  }

  get active(): number {
    return this.#attempts.size;
  }

  isQuick(origin: string): boolean {
    return this.#healths.of(origin) === 'quick';
  }

  ready(queue: Q): void {
    const { owner, origin } = queue;
    const target = this.#targets.get(origin) ?? this.#newTarget(origin);
    target.queues.add(owner, queue);
    target.group.targets.add(owner, target);
  }

  /** The queue has nothing to send any more. No effect if it is not ready. */
  leave(queue: Q): void {
    const { owner, origin } = queue;
    const target = this.#targets.get(origin);
    if (target === undefined) return;
    target.queues.delete(owner, queue);
    if (!target.queues.has(owner)) target.group.targets.delete(owner, target);
    this.#deleteIfUnused(target);
  }

  /** The next attempt, if a queue may send and a slot is free. Pass it to `begin` before any other call. */
  next(): Next<Q> | null {
    if (this.active >= attemptsMax) return null;
    for (const group of this.#order) {
      const hasSlot = group.active < group.atOnce || (group.active < group.max && !group.isPausing);
      const next = hasSlot ? group.targets.next(this.#mayTake(group)) : null;
      if (next !== null) return { owner: next.owner, target: next.item };
    }
    return null;
  }

  /** Takes a slot. Call `end` when the attempt of the returned queue has ended. */
  begin({ owner: waiting, target }: Next<Q>): Q {
    const { group } = target;
    const next = target.queues.next(this.#mayTake(group));
    if (next === null) throw new Error('the attempt is not the next one any more');
    const { owner, item: queue } = next;
    target.queues.served(owner, queue);
    // The slot counts for the owner that waited longest in the group. At the target another owner may come first.
    group.targets.served(waiting, target);
    for (const one of [waiting, owner]) {
      if (target.queues.has(one)) group.targets.add(one, target);
      else group.targets.delete(one, target);
    }
    this.#order.push(...this.#order.splice(this.#order.indexOf(group), 1));
    this.#attempts.set(queue, { owner, target, group });
    if (group.active >= group.atOnce) this.#pause(group);
    group.active += 1;
    target.active += 1;
    return queue;
  }

  /** The queue's attempt has ended. */
  end(queue: Q, result: AttemptResult): void {
    const attempt = this.#attempts.get(queue);
    if (attempt === undefined) throw new Error('the queue was not sending');
    const { target, group } = attempt;
    this.#attempts.delete(queue);
    group.active -= 1;
    target.active -= 1;
    this.#healths.note(target.origin, result);
    this.#move(target, this.#groups[this.#healths.of(target.origin)]);
    this.#deleteIfUnused(target);
  }

  #newTarget(origin: string): Target<Q> {
    const queues = new RoundRobin<Q>({ isOpen: () => true, first: 'oldest' });
    const target = { origin, queues, group: this.#groups[this.#healths.of(origin)], active: 0 };
    this.#targets.set(origin, target);
    return target;
  }

  #deleteIfUnused({ origin, queues, active }: Target<Q>): void {
    if (queues.isEmpty && active === 0) this.#targets.delete(origin);
  }

  /** Which owners may take a free slot. */
  #mayTake(group: Group<Q>): (owner: string) => boolean {
    if (group.health !== 'quick') return () => true;
    const left = group.max - group.active;
    return (owner) => {
      let held = 0;
      for (const attempt of this.#attempts.values()) if (attempt.group === group && attempt.owner === owner) held += 1;
      return held < left;
    };
  }

  #pause(group: Group<Q>): void {
    group.isPausing = true;
    this.#parts.clock.after(group.apartMs, () => {
      group.isPausing = false;
      this.#parts.freed();
    });
  }

  #move(target: Target<Q>, group: Group<Q>): void {
    if (group === target.group) return;
    for (const owner of target.queues.owners) {
      target.group.targets.delete(owner, target);
      group.targets.add(owner, target);
    }
    target.group = group;
  }
}

function newGroup<Q>(health: TargetHealth, max: number, apartMs: number): Group<Q> {
  const isUntried = health === 'untried';
  const perTarget = isUntried ? attemptsPerUntriedMax : attemptsPerTargetMax;
  const isOpen = ({ active }: Target<Q>) => active < perTarget;
  const targets = new RoundRobin<Target<Q>>({ isOpen, first: isUntried ? 'newest' : 'oldest' });
  const atOnce = apartMs === 0 ? max : max - givenApart(apartMs);
  return { health, targets, max, atOnce, apartMs, active: 0, isPausing: false };
}
