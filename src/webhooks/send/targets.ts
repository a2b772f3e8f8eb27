import type { Clock } from '../../runtime/clock/clock.ts';
import { OpenTurns } from './open-turns.ts';
import { Slots } from './slots.ts';
import { type AttemptResult, Standings, type TargetHealth } from './standings.ts';
import { Turns } from './turns.ts';

/** Concurrent attempts of a node. */
export const attemptsMax = 64;
/** Concurrent attempts at one target, which is an origin: scheme, host and port. */
export const attemptsPerTargetMax = 4;
/** Concurrent attempts at an untried target. The result of the first attempt decides whether it gets more. */
export const attemptsPerUntriedMax = 1;
/** Concurrent attempts at all quick targets, at all untried targets, and at all slow targets. */
export const attemptsAtQuickMax = 56;
export const attemptsAtUntriedMax = 28;
export const attemptsAtSlowMax = 20;
/** The pause between the last slots of untried and of slow targets (Slots). A slot becomes free within this time. */
export const apartAtUntriedMs = 500;
export const apartAtSlowMs = 1_000;

interface Target<Lane> {
  readonly origin: string;
  readonly lanes: Turns<Lane>;
  standing: TargetHealth;
  active: number;
}

/** The next attempt, as found by `turn`. */
interface Turn<Lane> {
  readonly standing: TargetHealth;
  readonly owner: string;
  readonly target: Target<Lane>;
}

interface Attempt<Lane> {
  readonly target: Target<Lane>;
  readonly owner: string;
  /** The health of the target when the attempt began. */
  readonly standing: TargetHealth;
}

interface TargetsParts<Lane> {
  readonly clock: Clock;
  /** Returns the actor that owns the queue's subscription. */
  ownerOf(lane: Lane): string;
  /** Called when `turn` may find an attempt again. */
  freed(): void;
}

/**
 * Decides which queue sends next. A queue (Lane) is a list of deliveries that are sent one after another.
 *
 * The choice is round-robin on three levels: among the healths (quick, untried, slow), among the owners that have
 * something to send to a target of this health, and among the owners at the chosen target. So no owner delays another
 * one by the number of its queues or targets.
 *
 * At quick targets an owner may hold at most as many slots as remain free. So the other owners can still send when all
 * targets of one owner stop answering at once.
 *
 * Of one owner's untried targets the newest is first: those that wait may be as dead as those that they wait behind.
 */
export class Targets<Lane> {
  readonly #ownerOf: (lane: Lane) => string;
  readonly #targets = new Map<string, Target<Lane>>();
  readonly #standings = new Standings();
  /** For each health, the targets that owners wait for. Open are targets that have fewer attempts than their limit. */
  readonly #turns: Readonly<Record<TargetHealth, OpenTurns<Target<Lane>>>> = {
    quick: new OpenTurns('oldest'),
    untried: new OpenTurns('newest'),
    slow: new OpenTurns('oldest'),
  };
  /** The healths in the order in which they are served next. */
  readonly #order: TargetHealth[] = ['quick', 'untried', 'slow'];
  readonly #attempts = new Map<Lane, Attempt<Lane>>();
  readonly #slots: Readonly<Record<'untried' | 'slow', Slots>>;
  /** Running attempts at targets that were quick when the attempt began: in total and by owner. */
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

  /** The queue has something to send, and is not sending. */
  ready(origin: string, lane: Lane): void {
    const target = this.#targets.get(origin) ?? this.#newTarget(origin);
    const owner = this.#ownerOf(lane);
    target.lanes.add(owner, lane);
    this.#list(owner, target);
    this.#place(target);
  }

  /**
   * Returns the next attempt, or null if no queue may send or no slot is free. Pass it to `take` before any other call.
   */
  turn(): Turn<Lane> | null {
    if (this.active >= attemptsMax) return null;
    for (const standing of this.#order) {
      if (!this.#hasSlot(standing)) continue;
      const next = this.#turns[standing].next(this.#mayTake(standing));
      if (next !== undefined) return { standing, owner: next.owner, target: next.one };
    }
    return null;
  }

  /** Takes a slot for the attempt. Returns the queue that may send. Call `done` when the attempt has ended. */
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

  /** The queue's attempt has ended, or the queue had nothing to send after all. Gives the slot back. */
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

  /** Returns a check which owners may take a free slot. */
  #mayTake(standing: TargetHealth): (owner: string) => boolean {
    if (standing !== 'quick') return () => true;
    const left = attemptsAtQuickMax - this.#atQuick;
    return (owner) => (this.#atQuickOf.get(owner) ?? 0) < left;
  }

  /** Notes whether the owner waits for the target: it does while it has queues there that are ready. */
  #list(owner: string, target: Target<Lane>): void {
    const turns = this.#turns[target.standing];
    if (target.lanes.has(owner)) turns.add(owner, target);
    else turns.delete(owner, target);
  }

  /** Changes the health of a target, and moves the owners that wait for it. */
  #move(target: Target<Lane>, standing: TargetHealth): void {
    if (standing === target.standing) return;
    this.#turns[target.standing].setOpen(target, false);
    for (const owner of target.lanes.owners) {
      this.#turns[target.standing].delete(owner, target);
      this.#turns[standing].add(owner, target);
    }
    target.standing = standing;
  }

  /** Notes whether the target may get another slot. Removes the target if nothing is sent there. */
  #place(target: Target<Lane>): void {
    const { active, lanes, standing, origin } = target;
    const max = standing === 'untried' ? attemptsPerUntriedMax : attemptsPerTargetMax;
    this.#turns[standing].setOpen(target, !lanes.isEmpty && active < max);
    if (lanes.isEmpty && active === 0) this.#targets.delete(origin);
  }
}
