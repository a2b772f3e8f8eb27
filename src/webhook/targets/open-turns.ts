import { OrderedSet } from './ordered-set.ts';
import { TurnHeap } from './turn-heap.ts';

/** An owner's place in line, or beside it; void once the owner has another one, or none. */
interface Place<T> {
  readonly turn: number;
  readonly waiting: Waiting<T>;
}

/** An owner who waits. */
interface Waiting<T> {
  readonly owner: string;
  readonly ones: OrderedSet<T>;
  place: Place<T> | null;
  isAside: boolean;
}

/** Who stands beside the line for one thing. */
interface Aside<T> {
  readonly places: TurnHeap<Place<T>>;
  owners: number;
}

/**
 * Whose turn it is where not all can be had that is waited for: what can is `open`. Owners take turns, however much each waits for; one
 * that waited for nothing is behind all that did. An owner keeps its turn while nothing that it waits for is open.
 *
 * Invariants: an owner who waits has one place, in line or aside with each of what it waits for; when it was set aside nothing of that was
 * open, and nothing has been added. So however many wait for what is not open, each is looked at once, until that
 * opens. What is not open is little at any time: there are attempts under way at each.
 */
export class OpenTurns<T> {
  readonly #ofOneOwner: 'oldest' | 'newest';
  readonly #waiting = new Map<string, Waiting<T>>();
  readonly #open = new Set<T>();
  readonly #line = new TurnHeap<Place<T>>();
  readonly #aside = new Map<T, Aside<T>>();
  #lastTurn = 0;

  /** `ofOneOwner`: what goes first of what one owner waits for, the oldest or the newest. */
  constructor(ofOneOwner: 'oldest' | 'newest') {
    this.#ofOneOwner = ofOneOwner;
  }

  /** What is waited for already keeps its place. */
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

  /** Whose turn it is and for what, of the owners that may have one now. */
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

  /** The owner has had a turn for this, for which it waits no more: its next turn is behind those of all others. */
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

  /** The first of those for whom something has opened since they were set aside. */
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

  /** Back into line, where its turn is. */
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

/** The first that may have a turn; those before it go from the places into `passed`, the void ones nowhere. */
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
