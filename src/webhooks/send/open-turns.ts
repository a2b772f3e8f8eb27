import { OrderedSet } from './ordered-set.ts';
import { TurnHeap } from './turn-heap.ts';

/** An owner's place in the line, or set aside. It is void once the owner has another place or none. */
interface Place<T> {
  readonly turn: number;
  readonly waiting: Waiting<T>;
}

/** An owner that waits for one or more things. */
interface Waiting<T> {
  readonly owner: string;
  readonly ones: OrderedSet<T>;
  place: Place<T> | null;
  isAside: boolean;
}

/** The owners that are set aside because they wait for one thing that is not open. */
interface Aside<T> {
  readonly places: TurnHeap<Place<T>>;
  owners: number;
}

/**
 * A fair queue of owners that wait for things (targets) of which only the `open` ones can be had now. Owners are served
 * round-robin, however many things each waits for. An owner that starts to wait goes behind all that wait already. An
 * owner keeps its place while nothing that it waits for is open.
 *
 * Invariants:
 * - A waiting owner has one place: in the line, or set aside under each thing that it waits for.
 * - When an owner was set aside, nothing that it waits for was open, and nothing has been added since. So however many
 *   owners wait for closed things, each is examined once until one of its things opens.
 *
 * Few things are closed at any time: attempts are running at each of them.
 */
export class OpenTurns<T> {
  readonly #ofOneOwner: 'oldest' | 'newest';
  readonly #waiting = new Map<string, Waiting<T>>();
  readonly #open = new Set<T>();
  readonly #line = new TurnHeap<Place<T>>();
  readonly #aside = new Map<T, Aside<T>>();
  #lastTurn = 0;

  /** `ofOneOwner`: which of the things that one owner waits for is served first, the oldest or the newest. */
  constructor(ofOneOwner: 'oldest' | 'newest') {
    this.#ofOneOwner = ofOneOwner;
  }

  /** The owner waits for `one`. Has no effect if it waits for it already. */
  add(owner: string, one: T): void {
    const waiting = this.#waiting.get(owner) ?? this.#newcomer(owner);
    if (waiting.ones.has(one)) return;
    this.#leaveAside(waiting);
    waiting.ones.add(one);
  }

  delete(owner: string, one: T): void {
    const waiting = this.#waiting.get(owner);
    if (waiting === undefined || !waiting.ones.has(one)) return;
    this.#leaveAside(waiting);
    waiting.ones.delete(one);
    if (!waiting.ones.isEmpty) return;
    waiting.place = null;
    this.#waiting.delete(owner);
    if (this.#waiting.size === 0) this.#line.clear();
  }

  setOpen(one: T, isOpen: boolean): void {
    if (isOpen) this.#open.add(one);
    else this.#open.delete(one);
  }

  /**
   * Returns the next owner that `may` allows, and the open thing that it gets. Returns undefined if there is none. The
   * owner keeps its place until `took` is called.
   */
  next(may: (owner: string) => boolean): { readonly owner: string; readonly one: T } | undefined {
    if (this.#open.size === 0) return undefined;
    const aside = this.#firstAside(may);
    const passed: Place<T>[] = [];
    let next: { readonly owner: string; readonly one: T } | undefined;
    while (next === undefined) {
      const first = firstOf(this.#line, may, passed);
      if (aside !== undefined && (first === undefined || aside.turn < first.turn)) next = this.#openOf(aside.waiting);
      else if (first === undefined) break;
      else next = this.#openOf(first.waiting);
      if (next === undefined && first !== undefined) this.#setAside(first);
    }
    putBack(this.#line, passed);
    return next;
  }

  /**
   * The owner got `one`, and does not wait for it any more. If it waits for other things, it goes to the end of the
   * line.
   */
  took(owner: string, one: T): void {
    this.delete(owner, one);
    const waiting = this.#waiting.get(owner);
    if (waiting !== undefined) this.#standInLine(waiting, ++this.#lastTurn);
  }

  #newcomer(owner: string): Waiting<T> {
    const waiting: Waiting<T> = { owner, ones: new OrderedSet(), place: null, isAside: false };
    this.#waiting.set(owner, waiting);
    this.#standInLine(waiting, ++this.#lastTurn);
    return waiting;
  }

  #standInLine(waiting: Waiting<T>, turn: number): void {
    waiting.place = { turn, waiting };
    this.#line.push(waiting.place);
  }

  #openOf({ owner, ones }: Waiting<T>): { readonly owner: string; readonly one: T } | undefined {
    for (const one of ones.from(this.#ofOneOwner)) if (this.#open.has(one)) return { owner, one };
    return undefined;
  }

  /** Returns the first place of the owners for which something has opened since they were set aside. */
  #firstAside(may: (owner: string) => boolean): Place<T> | undefined {
    let first: Place<T> | undefined;
    for (const [one, { places }] of this.#aside) {
      if (!this.#open.has(one)) continue;
      const passed: Place<T>[] = [];
      const place = firstOf(places, may, passed);
      putBack(places, passed);
      if (place !== undefined && (first === undefined || place.turn < first.turn)) first = place;
    }
    return first;
  }

  #setAside({ turn, waiting }: Place<T>): void {
    const place = { turn, waiting };
    waiting.place = place;
    waiting.isAside = true;
    for (const one of waiting.ones.from('oldest')) {
      const aside = this.#aside.get(one) ?? { places: new TurnHeap(), owners: 0 };
      aside.places.push(place);
      aside.owners += 1;
      this.#aside.set(one, aside);
    }
  }

  /** Returns an owner to the line, at its former place. */
  #leaveAside(waiting: Waiting<T>): void {
    if (!waiting.isAside || waiting.place === null) return;
    waiting.isAside = false;
    for (const one of waiting.ones.from('oldest')) {
      const aside = this.#aside.get(one);
      if (aside === undefined) continue;
      aside.owners -= 1;
      if (aside.owners === 0) this.#aside.delete(one);
    }
    this.#standInLine(waiting, waiting.place.turn);
  }
}

/** Returns the first place that `may` allows. Moves the places before it into `passed`, and removes void ones. */
function firstOf<T>(
  places: TurnHeap<Place<T>>,
  may: (owner: string) => boolean,
  passed: Place<T>[],
): Place<T> | undefined {
  for (;;) {
    const { first } = places;
    if (first === undefined) return undefined;
    const isVoid = first.waiting.place !== first;
    if (!isVoid && may(first.waiting.owner)) return first;
    if (!isVoid) passed.push(first);
    places.pop();
  }
}

function putBack<T>(places: TurnHeap<Place<T>>, passed: readonly Place<T>[]): void {
  for (const place of passed) places.push(place);
}
