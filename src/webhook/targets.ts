import type { Clock } from '../actors/clock.ts';
import { Slots } from './slots.ts';
import { type Standing, Standings, type Took } from './standings.ts';
import { Turns } from './turns.ts';

/** Attempts at once. */
export const attemptsMax = 64;
/** Attempts at once at one target, which is an origin: scheme, host and port. */
export const attemptsPerTargetMax = 4;
/** Attempts at once at a target that was never tried: what becomes of the first one says whether it gets more. */
export const attemptsPerUntriedMax = 1;
/** Attempts at once at all targets that answered quickly, that were never tried, and that did not answer quickly. */
export const attemptsAtQuickMax = 56;
export const attemptsAtUntriedMax = 24;
export const attemptsAtSlowMax = 24;

interface Target<Lane> {
  readonly origin: string;
  readonly ready: Lane[];
  active: number;
}

interface Attempt<Lane> {
  readonly target: Target<Lane>;
  readonly owner: string;
  /** Of the target when it began. */
  readonly standing: Standing;
}

export interface TargetsParts<Lane> {
  readonly clock: Clock;
  /** The actor whose deliveries the lane sends. */
  ownerOf(lane: Lane): string;
  /** `next` may have something that it had not when it was asked last. */
  freed(): void;
}

/**
 * Whose turn it is to send. A lane is what sends one after another; lanes of a target take turns, and so do targets of an owner, owners, and
 * the three standings. At quick targets an owner has no more slots than it leaves to the others, so that these go on when all of its own
 * stop answering at once. Of one owner's untried targets the newest is first: those that have waited may well be as dead as those that
 * they wait for.
 */
export class Targets<Lane> {
  readonly #ownerOf: (lane: Lane) => string;
  readonly #targets = new Map<string, Target<Lane>>();
  readonly #standings = new Standings();
  /** Targets with a lane and a slot of their own to spare. */
  readonly #turns: Readonly<Record<Standing, Turns<Target<Lane>>>> = {
    quick: new Turns({ newcomersFirst: false, ofOneOwner: 'oldest' }),
    untried: new Turns({ newcomersFirst: true, ofOneOwner: 'newest' }),
    slow: new Turns({ newcomersFirst: true, ofOneOwner: 'oldest' }),
  };
  /** The one that had its turn last is last. */
  readonly #order: Standing[] = ['quick', 'untried', 'slow'];
  readonly #attempts = new Map<Lane, Attempt<Lane>>();
  readonly #slots: Readonly<Record<'untried' | 'slow', Slots>>;
  /** Attempts that began at quick targets, in all and by owner. */
  #atQuick = 0;
  readonly #atQuickOf = new Map<string, number>();

  constructor({ clock, ownerOf, freed }: TargetsParts<Lane>) {
    this.#ownerOf = ownerOf;
    this.#slots = {
      untried: new Slots(attemptsAtUntriedMax, clock, freed),
      slow: new Slots(attemptsAtSlowMax, clock, freed),
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
    const target = this.#targets.get(origin) ?? { origin, ready: [], active: 0 };
    this.#targets.set(origin, target);
    target.ready.push(lane);
    this.#place(target);
  }

  /** Whether `next` would hand out a lane. */
  get hasNext(): boolean {
    return this.#nextStanding() !== undefined;
  }

  /** The lane whose turn it is; null while there is none, or no slot. `done` gives the slot back. */
  next(): Lane | null {
    const standing = this.#nextStanding();
    if (standing === undefined) return null;
    const target = this.#turns[standing].take(this.#mayTake(standing));
    const lane = target?.ready.shift();
    if (target === undefined || lane === undefined) return null;
    this.#order.push(...this.#order.splice(this.#order.indexOf(standing), 1));
    const owner = this.#ownerOf(lane);
    this.#attempts.set(lane, { target, owner, standing });
    if (standing === 'quick') this.#countQuick(owner, 1);
    else this.#slots[standing].take();
    target.active += 1;
    this.#place(target);
    return lane;
  }

  /** The lane has sent, or had nothing to send after all. */
  done(lane: Lane, took: Took): void {
    const attempt = this.#attempts.get(lane);
    if (attempt === undefined) throw new Error('the lane was not sending');
    const { target, owner, standing } = attempt;
    this.#attempts.delete(lane);
    if (standing === 'quick') this.#countQuick(owner, -1);
    else this.#slots[standing].giveBack();
    target.active -= 1;
    this.#standings.note(target.origin, took);
    if (target.active === 0 && target.ready.length === 0) this.#targets.delete(target.origin);
    else this.#place(target);
  }

  #countQuick(owner: string, by: 1 | -1): void {
    this.#atQuick += by;
    const count = (this.#atQuickOf.get(owner) ?? 0) + by;
    if (count === 0) this.#atQuickOf.delete(owner);
    else this.#atQuickOf.set(owner, count);
  }

  #nextStanding(): Standing | undefined {
    if (this.active >= attemptsMax) return undefined;
    return this.#order.find(
      (standing) => this.#hasSlot(standing) && this.#turns[standing].has(this.#mayTake(standing)),
    );
  }

  #hasSlot(standing: Standing): boolean {
    return standing === 'quick' ? this.#atQuick < attemptsAtQuickMax : this.#slots[standing].hasOne;
  }

  /** Which owners may take a slot that there is. */
  #mayTake(standing: Standing): (owner: string) => boolean {
    if (standing !== 'quick') return () => true;
    const left = attemptsAtQuickMax - this.#atQuick;
    return (owner) => (this.#atQuickOf.get(owner) ?? 0) < left;
  }

  /** Lets the target wait among those of its standing, if it has something to send and may. */
  #place(target: Target<Lane>): void {
    const standing = this.#standings.of(target.origin);
    for (const other of this.#order) if (other !== standing) this.#turns[other].delete(target);
    const [first] = target.ready;
    const max = standing === 'untried' ? attemptsPerUntriedMax : attemptsPerTargetMax;
    if (first !== undefined && target.active < max) this.#turns[standing].add(target, this.#ownerOf(first));
  }
}
