import type { SubscriptionRecord, Subscriptions } from '../../service/webhooks/subscription-record.ts';
import { UnreadableRecord } from '../../store/unreadable-record.ts';
import type { Pace } from '../pacing/pace.ts';
import type { RetryUntilStopped } from '../pacing/retry-until-stopped.ts';
import type { SubscriptionIndex } from './subscription-index.ts';

const subscriptionsAtOnce = 500;
/** Main thread: listing a page of subscriptions or of ledgers. */
const pageCostMs = 3;

export interface KnownSubscriptionsParts {
  readonly subscriptions: Subscriptions;
  readonly watches: SubscriptionIndex;
  readonly pace: Pace;
  readonly retryUntilStopped: RetryUntilStopped;
  /** Whether other nodes make and end subscriptions too. */
  readonly isShared: boolean;
  isStopped(): boolean;
  /** A subscription was not known here before. */
  added(subscriptionId: string): void;
  /** One has ended, which nobody told this node. */
  ended(subscriptionId: string): void;
}

/** Keeps what memory knows of subscriptions in force, and of the ledgers that they watch, as the store has it. */
export class KnownSubscriptions {
  readonly #parts: KnownSubscriptionsParts;
  /** The changes of subscriptions that memory has; null: none were read. */
  #changes: string | null = null;
  #isListingAgain = false;
  #catchingUp: Promise<void> = Promise.resolve();

  constructor(parts: KnownSubscriptionsParts) {
    this.#parts = parts;
  }

  /** Reads all of them. */
  find(): Promise<void> {
    return this.#parts.retryUntilStopped('finding subscriptions', () => this.#read());
  }

  /** Reads them again if other nodes have changed them since they were read last. One look at a time. */
  catchUp(): Promise<void> {
    const { subscriptions, retryUntilStopped, isShared } = this.#parts;
    if (!isShared) return Promise.resolve();
    this.#catchingUp = this.#catchingUp.then(() =>
      retryUntilStopped('looking for new subscriptions', async () => {
        if ((await subscriptions.changes()) !== this.#changes) await this.#read();
      }),
    );
    return this.#catchingUp;
  }

  /** Takes one in; its owner's ledgers are listed in the background. Harmless if it is there. */
  add(subscription: SubscriptionRecord): void {
    const { watches, pace, retryUntilStopped, added } = this.#parts;
    const isKnown = watches.get(subscription.id) !== undefined;
    const isToList = watches.add(subscription);
    if (!isKnown) added(subscription.id);
    if (!isToList) return;
    void retryUntilStopped('listing watched ledgers', () =>
      watches.list(subscription.actorId, () => pace.take(pageCostMs)),
    );
  }

  /** See WebhookWork. Its end may have landed, may land yet, or other nodes were not told: ended once more it is certain. */
  mayHaveEnded(subscriptionId: string, at: string): void {
    const { subscriptions, retryUntilStopped, ended } = this.#parts;
    void retryUntilStopped('ending a subscription', async () => {
      await subscriptions.end(subscriptionId, at, 'owner');
      ended(subscriptionId);
    });
  }

  /** Reads the lists in doubt again in the background, one at a time however many doubts there are. */
  listAgain(): void {
    if (this.#isListingAgain) return;
    this.#isListingAgain = true;
    void this.#parts.retryUntilStopped('listing watched ledgers again', () => this.#listDoubted());
  }

  async #read(): Promise<void> {
    const { subscriptions, pace } = this.#parts;
    const changes = await subscriptions.changes();
    const inForce = new Set<string>();
    let after: SubscriptionRecord | null = null;
    for (;;) {
      await pace.take(pageCostMs);
      const page: SubscriptionRecord[] = await subscriptions.inForce(subscriptionsAtOnce, after);
      for (const subscription of page) {
        inForce.add(subscription.id);
        this.add(subscription);
      }
      after = page.at(-1) ?? null;
      if (page.length < subscriptionsAtOnce) break;
    }
    await this.#dropEnded(inForce);
    this.#changes = changes;
  }

  /** What was not found in force has ended on another node, or was made here after the look. */
  async #dropEnded(inForce: ReadonlySet<string>): Promise<void> {
    const { subscriptions, watches, ended } = this.#parts;
    for (const { id } of [...watches.all()]) {
      if (inForce.has(id)) continue;
      const stored = await subscriptions.get(id).catch(passOver);
      // Of one that is damaged nothing is known: what memory has of it goes on.
      if (stored === null || (stored !== undefined && stored.endedAt !== null)) ended(id);
    }
  }

  async #listDoubted(): Promise<void> {
    const { watches, pace, isStopped } = this.#parts;
    const rest = () => pace.take(pageCostMs);
    await rest();
    for (let actorId = watches.nextDoubted(); actorId !== undefined; actorId = watches.nextDoubted()) {
      await watches.list(actorId, rest);
      await rest();
      if (isStopped()) break;
    }
    // In the same turn as the last look at what is in doubt, so that none comes up unseen in between.
    this.#isListingAgain = false;
  }
}

function passOver(error: unknown): undefined {
  if (!(error instanceof UnreadableRecord)) throw error;
}
