import { names } from '../../domain/event/projection.ts';
import { parseLedgerLine } from '../../service/reading/stored-lines.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';
import type { LedgerEntry, LedgerStore } from '../../store/ledger-store.ts';
import { linePages } from '../../store/pages.ts';
import { decodeOrPassOver, storedLine } from '../../store/unreadable-record.ts';

const linesAtOnce = 500;
const ledgersOfPrefix = names.ledgersOf('');

interface WatchingActor {
  readonly subscriptions: Set<string>;
  /** Ledgers that it is, or was, party or delegate of. Access is checked again for each event. */
  readonly ledgers: Set<string>;
  /** The actor as the only watcher: one set for all ledgers that nobody else watches, since a set takes 200 bytes. */
  readonly alone: Set<string>;
}

/**
 * Which subscriptions watch which ledger. One that names a ledger watches that one. Any other watches its owner's
 * ledgers: the stored list, and the ledgers that commits add to it.
 *
 * Invariants:
 * - Once a subscription is added, a ledger that its owner may read later is watched as soon as that is committed. A
 *   ledger from before is watched as soon as `list` has reached it. `found` is called for each.
 * - `of` never omits a subscription. While its owner's ledgers are being listed, it counts as watching every ledger.
 *   The same holds for a list in doubt and the ledgers that other nodes wrote since it was read.
 */
export class SubscriptionIndex {
  readonly #ledgers: LedgerStore;
  readonly #found: (ledgerId: string) => void;
  readonly #subscriptions = new Map<string, SubscriptionRecord>();
  readonly #byLedger = new Map<string, Set<string>>();
  readonly #actors = new Map<string, WatchingActor>();
  /** A set of one actor is that actor's `alone`, which is never changed. A larger one belongs to its ledger. */
  readonly #actorsByLedger = new Map<string, Set<string>>();
  readonly #unlisted = new Set<string>();
  /** Actors whose lists must be read again, with the number of the doubt. */
  readonly #doubted = new Map<string, number>();
  #inDoubt: ((ledgerId: string) => boolean)[] = [];
  #doubts = 0;

  /** `found` is called for every newly watched ledger. */
  constructor(ledgers: LedgerStore, found: (ledgerId: string) => void) {
    this.#ledgers = ledgers;
    this.#found = found;
  }

  get(subscriptionId: string): SubscriptionRecord | undefined {
    return this.#subscriptions.get(subscriptionId);
  }

  get count(): number {
    return this.#subscriptions.size;
  }

  all(): Iterable<SubscriptionRecord> {
    return this.#subscriptions.values();
  }

  /** Some come twice. */
  *watchedLedgers(): Iterable<string> {
    yield* this.#byLedger.keys();
    yield* this.#actorsByLedger.keys();
  }

  /** How many ledgers are watched. Those that are watched by name and as a ledger of an owner count twice. */
  get watchedCount(): number {
    return this.#byLedger.size + this.#actorsByLedger.size;
  }

  isWatched(ledgerId: string): boolean {
    return this.#byLedger.has(ledgerId) || this.#actorsByLedger.has(ledgerId);
  }

  /** The owners of the subscriptions that are known to watch the ledger. Some come twice. */
  *watchersOf(ledgerId: string): Iterable<string> {
    yield* this.#actorsByLedger.get(ledgerId) ?? none;
    for (const id of this.#byLedger.get(ledgerId) ?? none) {
      const subscription = this.#subscriptions.get(id);
      if (subscription !== undefined) yield subscription.actorId;
    }
  }

  /** Whether all lists have been read. */
  get isComplete(): boolean {
    return this.#unlisted.size === 0 && this.#doubted.size === 0;
  }

  of(ledgerId: string): SubscriptionRecord[] {
    const found: SubscriptionRecord[] = [];
    const add = (ids: Iterable<string>) => {
      for (const id of ids) {
        const subscription = this.#subscriptions.get(id);
        if (subscription !== undefined) found.push(subscription);
      }
    };
    add(this.#byLedger.get(ledgerId) ?? none);
    const doubted = this.#inDoubt.some((isInDoubt) => isInDoubt(ledgerId)) ? this.#doubted.keys() : none;
    for (const actorId of new Set([...(this.#actorsByLedger.get(ledgerId) ?? none), ...this.#unlisted, ...doubted]))
      add(this.#actors.get(actorId)?.subscriptions ?? none);
    return found;
  }

  /** Returns whether the owner's ledgers have to be listed now (`list`). */
  add(subscription: SubscriptionRecord): boolean {
    if (this.#subscriptions.has(subscription.id)) return false;
    this.#subscriptions.set(subscription.id, subscription);
    if (subscription.ledgerId !== null) {
      addTo(this.#byLedger, subscription.ledgerId, subscription.id);
      this.#found(subscription.ledgerId);
      return false;
    }
    const known = this.#actors.get(subscription.actorId);
    const actor = known ?? newActor(subscription.actorId);
    actor.subscriptions.add(subscription.id);
    if (known !== undefined) {
      for (const ledgerId of actor.ledgers) this.#found(ledgerId);
      return false;
    }
    this.#actors.set(subscription.actorId, actor);
    this.#unlisted.add(subscription.actorId);
    return true;
  }

  /** Other nodes may have added readers to these ledgers: all lists must be read again. */
  doubt(isInDoubt: (ledgerId: string) => boolean): void {
    if (this.#actors.size === 0) return;
    this.#doubts += 1;
    this.#inDoubt.push(isInDoubt);
    for (const actorId of this.#actors.keys()) this.#doubted.set(actorId, this.#doubts);
  }

  /** An actor whose list failed comes again after all others. */
  nextDoubted(): string | undefined {
    for (const [actorId, doubt] of this.#doubted) {
      this.#doubted.delete(actorId);
      this.#doubted.set(actorId, doubt);
      return actorId;
    }
    return undefined;
  }

  /** Reads the list of an actor's ledgers. Awaits `rest` between pages. */
  async list(actorId: string, rest: () => Promise<void>): Promise<void> {
    const actor = this.#actors.get(actorId);
    const doubt = this.#doubted.get(actorId);
    if (actor === undefined) return;
    // The actor may have been removed, and added again, meanwhile.
    const isListed = () => this.#actors.get(actorId) === actor;
    const list = names.ledgersOf(actorId);
    for await (const { lines, isLast } of linePages(this.#ledgers, list, linesAtOnce)) {
      if (!isListed()) return;
      for (const { value } of lines) {
        const line = decodeOrPassOver(storedLine(list, value), parseLedgerLine);
        if (line !== undefined) this.#note(actorId, line.ledgerId);
      }
      if (isLast) {
        this.#unlisted.delete(actorId);
        // A doubt raised during the read stays.
        if (this.#doubted.get(actorId) === doubt) this.#trust(actorId);
        return;
      }
      await rest();
      if (!isListed()) return;
    }
  }

  learn(ledgerId: string, entries: readonly Pick<LedgerEntry, 'projections'>[]): void {
    if (this.#actors.size === 0) return;
    for (const { projections } of entries) {
      for (const projection of projections) {
        if (projection.kind === 'line' && projection.list.startsWith(ledgersOfPrefix))
          this.#note(projection.list.slice(ledgersOfPrefix.length), ledgerId);
      }
    }
  }

  /** Returns the ledgers that no subscription watches any more. */
  remove(subscriptionId: string): string[] {
    const subscription = this.#subscriptions.get(subscriptionId);
    if (subscription === undefined) return [];
    this.#subscriptions.delete(subscriptionId);
    if (subscription.ledgerId !== null) {
      removeFrom(this.#byLedger, subscription.ledgerId, subscriptionId);
      return this.isWatched(subscription.ledgerId) ? [] : [subscription.ledgerId];
    }
    const actor = this.#actors.get(subscription.actorId);
    if (actor === undefined) return [];
    actor.subscriptions.delete(subscriptionId);
    if (actor.subscriptions.size > 0) return [];
    this.#actors.delete(subscription.actorId);
    this.#unlisted.delete(subscription.actorId);
    this.#trust(subscription.actorId);
    for (const ledgerId of actor.ledgers) this.#unwatch(ledgerId, subscription.actorId);
    return [...actor.ledgers].filter((ledgerId) => !this.isWatched(ledgerId));
  }

  #trust(actorId: string): void {
    this.#doubted.delete(actorId);
    if (this.#doubted.size === 0) this.#inDoubt = [];
  }

  #note(actorId: string, ledgerId: string): void {
    const actor = this.#actors.get(actorId);
    if (actor === undefined || actor.ledgers.has(ledgerId)) return;
    actor.ledgers.add(ledgerId);
    const others = this.#actorsByLedger.get(ledgerId);
    if (others === undefined) this.#actorsByLedger.set(ledgerId, actor.alone);
    else if (others.size === 1) this.#actorsByLedger.set(ledgerId, new Set([...others, actorId]));
    else others.add(actorId);
    this.#found(ledgerId);
  }

  #unwatch(ledgerId: string, actorId: string): void {
    const actors = this.#actorsByLedger.get(ledgerId);
    if (actors === undefined) return;
    if (actors.size === 1) {
      this.#actorsByLedger.delete(ledgerId);
      return;
    }
    actors.delete(actorId);
    if (actors.size > 1) return;
    for (const last of actors) {
      const alone = this.#actors.get(last)?.alone;
      if (alone !== undefined) this.#actorsByLedger.set(ledgerId, alone);
    }
  }
}

const none: readonly string[] = [];

function newActor(actorId: string): WatchingActor {
  return { subscriptions: new Set(), ledgers: new Set(), alone: new Set([actorId]) };
}

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function removeFrom(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key);
  if (set?.delete(value) && set.size === 0) sets.delete(key);
}
