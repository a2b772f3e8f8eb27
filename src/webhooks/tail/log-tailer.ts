import type { CommitListener } from '../../actors/ledger/commit-listener.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';
import type { LedgerEntry } from '../../store/ledger-store.ts';
import { InFlightWrites } from './in-flight-writes.ts';
import { KnownSubscriptions, type KnownSubscriptionsParts } from './known-subscriptions.ts';
import { LedgerBarriers, type LedgerBarriersParts } from './ledger-barriers.ts';
import { LedgerTail, type LedgerTailParts } from './ledger-tail.ts';
import { SubscriptionIndex } from './subscription-index.ts';
import { TailScan } from './tail-scan.ts';

/** After so many scans, the lists of watched ledgers are read again. */
const scansBetweenLists = 20;

interface LogTailerParts
  extends Omit<LedgerTailParts, 'index' | 'barriers' | 'underWayFrom' | 'upToDate'>,
    Pick<LedgerBarriersParts, 'readBarrier'>,
    Omit<KnownSubscriptionsParts, 'index'> {}

/** Turns the events of this node's ledgers into delivery records. */
export class LogTailer implements CommitListener {
  /** The active subscriptions, by the ledgers that they watch. */
  readonly index: SubscriptionIndex;
  readonly #isShared: boolean;
  readonly #subscriptions: KnownSubscriptions;
  readonly #writes: InFlightWrites;
  readonly #barriers: LedgerBarriers;
  readonly #tail: LedgerTail;
  readonly #scan: TailScan;
  #scanCount = 0;

  constructor(parts: LogTailerParts) {
    const { ledgers, clock } = parts;
    const wake = (ledgerId: string) => this.#tail.wake(ledgerId);
    this.#isShared = parts.isShared;
    this.index = new SubscriptionIndex(ledgers, wake);
    const index = this.index;
    const writes = new InFlightWrites(() => clock.now());
    const barriers = new LedgerBarriers({
      ...parts,
      newestAnswered: (ledgerId) => writes.newestAnswered(ledgerId),
      certain: wake,
    });
    this.#writes = writes;
    this.#barriers = barriers;
    this.#subscriptions = new KnownSubscriptions({ ...parts, index });
    this.#tail = new LedgerTail({
      ...parts,
      index,
      barriers,
      underWayFrom: (ledgerId) => writes.underWayFrom(ledgerId),
      upToDate: () => this.catchUp(),
    });
    this.#scan = new TailScan({
      ...parts,
      watchedLedgers: () => index.watchedLedgers(),
      scanLedger: (ledgerId) => this.#tail.scan(ledgerId),
    });
  }

  /** Finds all active subscriptions, and then tails the ledgers. */
  async start(): Promise<void> {
    await this.#subscriptions.find();
    this.#tail.open();
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
    this.#tail.release(ledgerId);
  }

  committed(ledgerId: string, entries: readonly LedgerEntry[]): void {
    this.#writes.committed(ledgerId, entries.at(-1)?.seq ?? 0);
    this.index.learn(ledgerId, entries);
    this.claimed(ledgerId);
  }

  unsettled(ledgerId: string, entries: readonly LedgerEntry[]): void {
    // If the entries do not stand, the index only knows readers too many: access is checked for each event.
    this.index.learn(ledgerId, entries);
    if (this.index.isWatched(ledgerId)) this.#barriers.ask(ledgerId);
  }

  claimed(ledgerId: string): void {
    if (this.index.isWatched(ledgerId)) this.#tail.wake(ledgerId);
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
    // The tail removes the cursors of ledgers that have no subscription any more.
    for (const ledgerId of this.index.remove(subscriptionId)) this.#tail.wake(ledgerId);
  }

  /** See WebhookWork. */
  mayHaveEnded(subscriptionId: string, at: string): void {
    this.#subscriptions.mayHaveEnded(subscriptionId, at);
  }

  /** The first seq of a ledger that may lack delivery records. */
  position(ledgerId: string): Promise<number> {
    return this.#tail.position(ledgerId);
  }

  /** Scans this node's ledgers for events that other nodes have written. Continues in the background. */
  scan(): void {
    if (!this.#isShared) return;
    void this.#scan.round();
    this.#scanCount += 1;
    if (this.#scanCount % scansBetweenLists !== 0) return;
    // The events of a watched ledger show its new readers, so no such ledger is in doubt.
    this.index.doubt(() => false);
    this.#subscriptions.listAgain();
  }

  /** See Webhooks. */
  async takeOver(isNew: (id: string) => boolean, own: () => void): Promise<void> {
    this.index.doubt(isNew);
    this.#subscriptions.listAgain();
    await this.#subscriptions.find();
    own();
    for (const ledgerId of this.index.watchedLedgers()) if (isNew(ledgerId)) this.#tail.wake(ledgerId);
  }

  giveUp(isGone: (id: string) => boolean): void {
    for (const ledgerId of this.index.watchedLedgers()) if (isGone(ledgerId)) this.#tail.forget(ledgerId);
  }

  /** Starts nothing new. Resolves when all work has ended. */
  async stop(): Promise<void> {
    this.#barriers.stop();
    await Promise.all([this.#scan.stop(), this.#tail.stop()]);
  }
}
