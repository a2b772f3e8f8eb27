interface Waiting<Item> {
  readonly owner: string;
  /** In the order in which the owner began to wait. */
  readonly items: Set<Item>;
  /** The owner with the smallest place is served next. */
  place: number;
  isParked: boolean;
}

interface RoundRobinOptions<Item> {
  isOpen(item: Item): boolean;
  /** Which of the open items of one owner is served first. */
  readonly first: 'oldest' | 'newest';
}

/**
 * Serves owners round-robin, however many items each of them waits for. An owner that starts to wait goes behind all
 * that wait already, and keeps its place while none of its items is open.
 *
 * An owner without an open item is parked: it leaves the line, and waits at each of its items. So however many owners
 * wait for closed items, each is examined once until one of its items opens. At any time few items are closed.
 */
export class RoundRobin<Item> {
  readonly #options: RoundRobinOptions<Item>;
  /** By owner, in the order of their places. */
  readonly #waiting = new Map<string, Waiting<Item>>();
  /** The owners that are not parked, and the parked ones by item. Sorted by place. */
  readonly #line: Waiting<Item>[] = [];
  readonly #parked = new Map<Item, Waiting<Item>[]>();
  #lastPlace = 0;

  constructor(options: RoundRobinOptions<Item>) {
    this.#options = options;
  }

  get owners(): Iterable<string> {
    return this.#waiting.keys();
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  has(owner: string): boolean {
    return this.#waiting.has(owner);
  }

  /** No effect if the owner waits for the item already. */
  add(owner: string, item: Item): void {
    const waiting = this.#waiting.get(owner) ?? this.#newcomer(owner);
    if (waiting.items.has(item)) return;
    this.#unpark(waiting);
    waiting.items.add(item);
  }

  delete(owner: string, item: Item): void {
    const waiting = this.#waiting.get(owner);
    if (waiting?.items.has(item) !== true) return;
    this.#unpark(waiting);
    waiting.items.delete(item);
    if (waiting.items.size > 0) return;
    this.#waiting.delete(owner);
    remove(this.#line, waiting);
  }

  /** The next owner that `may` be served, and its item. Changes no place. */
  next(may: (owner: string) => boolean): { readonly owner: string; readonly item: Item } | null {
    const { isOpen } = this.#options;
    for (;;) {
      let first = this.#line.find(({ owner }) => may(owner));
      for (const [item, parked] of this.#parked) {
        const other = isOpen(item) ? parked.find(({ owner }) => may(owner)) : undefined;
        if (other !== undefined && other.place < (first?.place ?? Number.POSITIVE_INFINITY)) first = other;
      }
      if (first === undefined) return null;
      const item = this.#openItemOf(first);
      if (item !== undefined) return { owner: first.owner, item };
      this.#park(first);
    }
  }

  /** The owner does not wait for the item any more, and goes behind all owners. */
  served(owner: string, item: Item): void {
    this.delete(owner, item);
    const waiting = this.#waiting.get(owner);
    if (waiting === undefined) return;
    remove(this.#line, waiting);
    this.#waiting.delete(owner);
    this.#standLast(waiting);
  }

  #newcomer(owner: string): Waiting<Item> {
    const waiting: Waiting<Item> = { owner, items: new Set(), place: 0, isParked: false };
    this.#standLast(waiting);
    return waiting;
  }

  #standLast(waiting: Waiting<Item>): void {
    this.#lastPlace += 1;
    waiting.place = this.#lastPlace;
    this.#waiting.set(waiting.owner, waiting);
    this.#line.push(waiting);
  }

  #openItemOf({ items }: Waiting<Item>): Item | undefined {
    const { isOpen, first } = this.#options;
    let found: Item | undefined;
    for (const item of items) {
      if (!isOpen(item)) continue;
      found = item;
      if (first === 'oldest') break;
    }
    return found;
  }

  #park(waiting: Waiting<Item>): void {
    waiting.isParked = true;
    remove(this.#line, waiting);
    for (const item of waiting.items) {
      const parked = this.#parked.get(item) ?? [];
      this.#parked.set(item, parked);
      insert(parked, waiting);
    }
  }

  #unpark(waiting: Waiting<Item>): void {
    if (!waiting.isParked) return;
    waiting.isParked = false;
    for (const item of waiting.items) {
      const parked = this.#parked.get(item) ?? [];
      remove(parked, waiting);
      if (parked.length === 0) this.#parked.delete(item);
    }
    insert(this.#line, waiting);
  }
}

type Line = { readonly place: number }[];

function insert(line: Line, one: Line[number]): void {
  line.splice(indexOf(line, one.place), 0, one);
}

function remove(line: Line, one: Line[number]): void {
  line.splice(indexOf(line, one.place), 1);
}

/** The index of the first element at this place or a later one: a binary search. */
function indexOf(line: Line, place: number): number {
  let low = 0;
  let high = line.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((line[middle]?.place ?? place) < place) low = middle + 1;
    else high = middle;
  }
  return low;
}
