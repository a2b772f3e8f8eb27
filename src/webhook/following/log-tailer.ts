import type { CommitListener } from '../../actors/commit-listener.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';
import type { LedgerEntry } from '../../store/ledger-store.ts';
import { InFlightWrites } from './in-flight-writes.ts';
import { KnownSubscriptions, type KnownSubscriptionsParts } from './known-subscriptions.ts';
import { LedgerBarriers, type LedgerCertaintyParts } from './ledger-barriers.ts';
import { type FollowerParts, LedgerTail } from './ledger-tail.ts';
import { SubscriptionIndex } from './subscription-index.ts';
import { TailScan } from './tail-scan.ts';

/** Every so many looks the lists of watched ledgers are read again too. */
const looksBetweenLists = 20;

export interface FollowingParts
  extends Omit<FollowerParts, 'watches' | 'certainty' | 'underWayFrom' | 'upToDate'>,
    Pick<LedgerCertaintyParts, 'readBarrier'>,
    Omit<KnownSubscriptionsParts, 'watches'> {}

/** Follows the ledgers that are this node's own: from what is appended to the records of its deliveries. */
export class LogTailer implements CommitListener {
  /** Which subscriptions are in force, and what they watch. */
  readonly watches: SubscriptionIndex;
  readonly #isShared: boolean;
  readonly #subscriptions: KnownSubscriptions;
  readonly #writes: InFlightWrites;
  readonly #certainty: LedgerBarriers;
  readonly #follower: LedgerTail;
  readonly #look: TailScan;
  #looks = 0;

  constructor(parts: FollowingParts) {
    const { ledgers, clock } = parts;
    const wake = (ledgerId: string) => this.#follower.wake(ledgerId);
    this.#isShared = parts.isShared;
    this.watches = new SubscriptionIndex(ledgers, wake);
    const watches = this.watches;
    const writes = new InFlightWrites(() => clock.now());
    const certainty = new LedgerBarriers({
      ...parts,
      newestAnswered: (ledgerId) => writes.newestAnswered(ledgerId),
      certain: wake,
    });
    this.#writes = writes;
    this.#certainty = certainty;
    this.#subscriptions = new KnownSubscriptions({ ...parts, watches });
    this.#follower = new LedgerTail({
      ...parts,
      watches,
      certainty,
      underWayFrom: (ledgerId) => writes.underWayFrom(ledgerId),
      upToDate: () => this.catchUp(),
    });
    this.#look = new TailScan({
      ...parts,
      watchedLedgers: () => watches.watchedLedgers(),
      look: (ledgerId) => this.#follower.look(ledgerId),
    });
  }

  /** Finds all subscriptions in force, and follows from then on. */
  async start(): Promise<void> {
    await this.#subscriptions.find();
    this.#follower.open();
  }

  /** Reads the subscriptions again if other nodes have changed them since they were read last. */
  catchUp(): Promise<void> {
    return this.#subscriptions.catchUp();
  }

  writing(ledgerId: string, fromSeq: number): void {
    this.#writes.writing(ledgerId, fromSeq);
  }

  settled(ledgerId: string): void {
    this.#writes.settled(ledgerId);
    this.#follower.release(ledgerId);
  }

  committed(ledgerId: string, entries: readonly LedgerEntry[]): void {
    this.#writes.committed(ledgerId, entries.at(-1)?.seq ?? 0);
    this.watches.learn(ledgerId, entries);
    this.claimed(ledgerId);
  }

  unsettled(ledgerId: string, entries: readonly LedgerEntry[]): void {
    // Who reads the ledger by entries that do not stand after all is let in to none of it: each event is asked for.
    this.watches.learn(ledgerId, entries);
    if (this.watches.isWatched(ledgerId)) this.#certainty.ask(ledgerId);
  }

  claimed(ledgerId: string): void {
    if (this.watches.isWatched(ledgerId)) this.#follower.wake(ledgerId);
  }

  /** See WebhookWork. */
  newestAnswered(ledgerId: string): number | null {
    return this.#writes.newestAnswered(ledgerId);
  }

  /** See WebhookWork. */
  writtenLately(limit: number): readonly string[] {
    return this.#writes.lately(limit);
  }

  subscribed(subscription: SubscriptionRecord): void {
    this.#subscriptions.add(subscription);
  }

  ended(subscriptionId: string): void {
    // Cursors of ledgers that nobody watches any more are removed.
    for (const ledgerId of this.watches.remove(subscriptionId)) this.#follower.wake(ledgerId);
  }

  /** See WebhookWork. */
  mayHaveEnded(subscriptionId: string, at: string): void {
    this.#subscriptions.mayHaveEnded(subscriptionId, at);
  }

  /** The first seq of a ledger that may lack delivery records. */
  position(ledgerId: string): Promise<number> {
    return this.#follower.position(ledgerId);
  }

  /** Looks whether ledgers of this node have events that nobody told of: who wrote may not have been this node. */
  look(): void {
    if (!this.#isShared) return;
    void this.#look.round();
    this.#looks += 1;
    if (this.#looks % looksBetweenLists !== 0) return;
    // Of a ledger that is watched already its own events say who was let in.
    this.watches.doubt(() => false);
    this.#subscriptions.listAgain();
  }

  /** See Webhooks. */
  async takeOver(isNew: (id: string) => boolean, own: () => void): Promise<void> {
    this.watches.doubt(isNew);
    this.#subscriptions.listAgain();
    await this.#subscriptions.find();
    own();
    for (const ledgerId of this.watches.watchedLedgers()) if (isNew(ledgerId)) this.#follower.wake(ledgerId);
  }

  giveUp(isGone: (id: string) => boolean): void {
    for (const ledgerId of this.watches.watchedLedgers()) if (isGone(ledgerId)) this.#follower.forget(ledgerId);
  }

  /** Begins nothing new; resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#certainty.stop();
    await Promise.all([this.#look.stop(), this.#follower.stop()]);
  }
}
