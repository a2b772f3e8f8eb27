import type { Clock } from '../../actors/clock.ts';
import { OpenTurns } from './open-turns.ts';
import { Slots } from './slots.ts';
import { type AttemptResult, Standings, type TargetHealth } from './standings.ts';
import { Turns } from './turns.ts';

/** Attempts at once. */
export const attemptsMax = 64;
/** Attempts at once at one target, which is an origin: scheme, host and port. */
export const attemptsPerTargetMax = 4;
/** Attempts at once at a target that was never tried: what becomes of the first one says whether it gets more. */
export const attemptsPerUntriedMax = 1;
/** Attempts at once at all targets that answered quickly, that were never tried, and that did not answer quickly. */
export const attemptsAtQuickMax = 56;
export const attemptsAtUntriedMax = 28;
export const attemptsAtSlowMax = 20;
/** How long apart the last slots of those are given: there is always one to be had within this. */
export const apartAtUntriedMs = 500;
export const apartAtSlowMs = 1_000;

interface Target<Lane> {
  readonly origin: string;
  readonly lanes: Turns<Lane>;
  standing: TargetHealth;
  active: number;
}

/** What `turn` found. */
interface Turn<Lane> {
  readonly standing: TargetHealth;
  readonly owner: string;
  readonly target: Target<Lane>;
}

interface Attempt<Lane> {
  readonly target: Target<Lane>;
  readonly owner: string;
  /** Of the target when it began. */
  readonly standing: TargetHealth;
}

export interface TargetsParts<Lane> {
  readonly clock: Clock;
  /** The actor whose deliveries the lane sends. */
  ownerOf(lane: Lane): string;
  /** `turn` may find one where it found none when it was asked last. */
  freed(): void;
}

/**
 * Whose turn it is to send. A lane is what sends one after another. The three standings take turns; in each of them owners do, for a target
 * to which they have something to send, and at the target its owners do again: so no number of lanes or targets of one delays another.
 * At quick targets an owner has no more slots than it leaves to the others, so that these go on when all of its own stop answering at once.
 * Of one owner's untried targets the newest is first: those that have waited may well be as dead as those that they wait for.
 */
export class Targets<Lane> {
  readonly #ownerOf: (lane: Lane) => string;
  readonly #targets = new Map<string, Target<Lane>>();
  readonly #standings = new Standings();
  /** Targets by the owners that have lanes ready there; open are those with a slot of their own to spare. */
  readonly #turns: Readonly<Record<TargetHealth, OpenTurns<Target<Lane>>>> = {
    quick: new OpenTurns('oldest'),
    untried: new OpenTurns('newest'),
    slow: new OpenTurns('oldest'),
  };
  /** The one that had its turn last is last. */
  readonly #order: TargetHealth[] = ['quick', 'untried', 'slow'];
  readonly #attempts = new Map<Lane, Attempt<Lane>>();
  readonly #slots: Readonly<Record<'untried' | 'slow', Slots>>;
  /** Attempts that began at quick targets, in all and by owner. */
  #atQuick = 0;
  readonly #atQuickOf = new Map<string, number>();

  constructor({ clock, ownerOf, freed }: TargetsParts<Lane>) {
    this.#ownerOf = ownerOf;
    this.#slots = {
      untried: new Slots(attemptsAtUntriedMax, apartAtUntriedMs, clock, freed),
      slow: new Slots(attemptsAtSlowMax, apartAtSlowMs, clock, freed),
    };
  }

  get active(): number {
    return this.#attempts.size;
  }

  isQuick(origin: string): boolean {
    return this.#standings.of(origin) === 'quick';
  }

  /** The lane has something to send and is not sending. */
  ready(origin: string, lane: Lane): void {
    const target = this.#targets.get(origin) ?? this.#newTarget(origin);
    const owner = this.#ownerOf(lane);
    target.lanes.add(owner, lane);
    this.#list(owner, target);
    this.#place(target);
  }

  /** Whose turn it is; null: nobody's, or there is no slot. It is for `take`, before anything else happens. */
  turn(): Turn<Lane> | null {
    if (this.active >= attemptsMax) return null;
    for (const standing of this.#order) {
      if (!this.#hasSlot(standing)) continue;
      const next = this.#turns[standing].next(this.#mayTake(standing));
      if (next !== undefined) return { standing, owner: next.owner, target: next.one };
    }
    return null;
  }

  /** The lane whose turn it is, with a slot, which `done` gives back. */
  take(turn: Turn<Lane>): Lane {
    const { target, standing } = turn;
    const next = target.lanes.take(this.#mayTake(standing));
    if (next === null) throw new Error('nobody has this turn any more');
    const { owner, one: lane } = next;
    this.#turns[standing].took(turn.owner, target);
    this.#list(turn.owner, target);
    this.#list(owner, target);
    this.#order.push(...this.#order.splice(this.#order.indexOf(standing), 1));
    this.#attempts.set(lane, { target, owner, standing });
    if (standing === 'quick') this.#countQuick(owner, 1);
    else this.#slots[standing].take();
    target.active += 1;
    this.#place(target);
    return lane;
  }

  /** The lane has sent, or had nothing to send after all. */
  done(lane: Lane, took: AttemptResult): void {
    const attempt = this.#attempts.get(lane);
    if (attempt === undefined) throw new Error('the lane was not sending');
    const { target, owner, standing } = attempt;
    this.#attempts.delete(lane);
    if (standing === 'quick') this.#countQuick(owner, -1);
    else this.#slots[standing].giveBack();
    target.active -= 1;
    this.#standings.note(target.origin, took);
    this.#move(target, this.#standings.of(target.origin));
    this.#place(target);
  }

  #countQuick(owner: string, by: 1 | -1): void {
    this.#atQuick += by;
    const count = (this.#atQuickOf.get(owner) ?? 0) + by;
    if (count === 0) this.#atQuickOf.delete(owner);
    else this.#atQuickOf.set(owner, count);
  }

  #newTarget(origin: string): Target<Lane> {
    const target = { origin, lanes: new Turns<Lane>(), standing: this.#standings.of(origin), active: 0 };
    this.#targets.set(origin, target);
    return target;
  }

  #hasSlot(standing: TargetHealth): boolean {
    return standing === 'quick' ? this.#atQuick < attemptsAtQuickMax : this.#slots[standing].hasOne;
  }

  /** Which owners may take a slot that there is. */
  #mayTake(standing: TargetHealth): (owner: string) => boolean {
    if (standing !== 'quick') return () => true;
    const left = attemptsAtQuickMax - this.#atQuick;
    return (owner) => (this.#atQuickOf.get(owner) ?? 0) < left;
  }

  /** Lets the target wait for its turn among an owner's while lanes of that owner wait for it. */
  #list(owner: string, target: Target<Lane>): void {
    const turns = this.#turns[target.standing];
    if (target.lanes.has(owner)) turns.add(owner, target);
    else turns.delete(owner, target);
  }

  /** What waits for the target waits among those of this standing from now on. */
  #move(target: Target<Lane>, standing: TargetHealth): void {
    if (standing === target.standing) return;
    this.#turns[target.standing].setOpen(target, false);
    for (const owner of target.lanes.owners) {
      this.#turns[target.standing].delete(owner, target);
      this.#turns[standing].add(owner, target);
    }
    target.standing = standing;
  }

  /** Notes whether the target can be given a slot; forgets it where nothing is sent there. */
  #place(target: Target<Lane>): void {
    const { active, lanes, standing, origin } = target;
    const max = standing === 'untried' ? attemptsPerUntriedMax : attemptsPerTargetMax;
    this.#turns[standing].setOpen(target, !lanes.isEmpty && active < max);
    if (lanes.isEmpty && active === 0) this.#targets.delete(origin);
  }
}
