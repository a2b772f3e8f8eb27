import type { CommitListener } from '../actors/commit-listener.ts';
import { isoTime } from '../domain/time.ts';
import { answeredSeqsIn } from '../service/webhooks/answered-seqs.ts';
import { deliveriesIn } from '../service/webhooks/deliveries.ts';
import { type SubscriptionRecord, subscriptionsIn } from '../service/webhooks/subscription-record.ts';
import type { WebhookWork } from '../service/webhooks/webhook-work.ts';
import type { LedgerEntry } from '../store/ledger-store.ts';
import { cursorsIn } from './following/cursor-record.ts';
import { LogTailer } from './following/log-tailer.ts';
import { Pace } from './pacing/pace.ts';
import { retryUntilStopped } from './pacing/retry-until-stopped.ts';
import { Tide } from './pacing/tide.ts';
import { type AttemptParts, attempt } from './sending/attempt.ts';
import { mayReadEvent } from './sending/event-access.ts';
import { EventBodies } from './sending/event-bodies.ts';
import { Sender } from './sending/sender.ts';
import type { WebhookParts } from './webhook-parts.ts';

const keptAliveEveryMs = 1_000;

/**
 * Webhooks of a node: follows the ledgers that are its own and sends for the subscriptions that are its own. Everything that must not be
 * lost is in the store: the logs, a cursor a ledger, the delivery records. What is here in memory is found again at start.
 */
export class Webhooks implements CommitListener, WebhookWork, AsyncDisposable {
  readonly #parts: WebhookParts;
  readonly #pace: Pace;
  readonly #tide: Tide;
  readonly #following: LogTailer;
  readonly #sender: Sender;
  #stopped = false;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
    const { ledgers, records, reading, secrets, poster, clock, log, meter } = parts;
    const ownsShardOf = (id: string) => parts.ownsShardOf(id);
    const isStopped = () => this.#stopped;
    const persevere = retryUntilStopped(clock, log, isStopped);
    const subscriptions = subscriptionsIn(records);
    this.#pace = new Pace(parts);
    this.#tide = new Tide({ clock, isBusy: () => this.#pace.isBusy });
    const riding = this.#tide.riding(records);
    const shared = { deliveries: deliveriesIn(riding, () => clock.now()), pace: this.#pace, clock, log, ownsShardOf };
    this.#following = new LogTailer({
      ...shared,
      ledgers,
      cursors: cursorsIn(riding),
      answeredSeqs: answeredSeqsIn(records),
      subscriptions,
      persevere,
      isShared: parts.tellOthers !== null,
      isStopped,
      facts: (ledgerId) => reading.ledgerFacts(ledgerId),
      readBarrier: (ledgerId) => parts.readBarrier(ledgerId),
      // What another node told of it before it was known here was not heard.
      added: (subscriptionId) => this.#sender.wake(subscriptionId),
      ended: (subscriptionId) => this.ended(subscriptionId),
      queued: (subscriptionId) => this.queued(subscriptionId),
      fannedOut: (count) => meter.fannedOut(count),
    });
    const attemptParts: AttemptParts = {
      bodies: new EventBodies(ledgers),
      secrets,
      poster,
      clock,
      mayStillSend: (subscriptionId) => ownsShardOf(subscriptionId) && this.subscription(subscriptionId) !== undefined,
      mayRead: (actorId, ledgerId, masterId) => mayReadEvent(reading, actorId, ledgerId, masterId),
    };
    this.#sender = new Sender({
      ...shared,
      subscription: (id) => this.subscription(id),
      position: (ledgerId) => this.#following.position(ledgerId),
      attempt: (subscription, delivery) => attempt(attemptParts, subscription, delivery),
      gone: (subscriptionId) => {
        this.ended(subscriptionId);
        const at = isoTime(clock.now());
        return persevere('ending a subscription', async () => {
          await subscriptions.end(subscriptionId, at, 'receiver');
        });
      },
      attempted: (outcome) => meter.attempted(outcome),
    });
  }

  /** Looks through all subscriptions in force: whose ledgers are watched, and what waits to be sent. Goes on in the background. */
  start(): void {
    void this.#following.start().then(() => this.#wakeSender(() => true));
  }

  /** Reads the subscriptions again if other nodes have changed them since they were read last. */
  catchUp(): Promise<void> {
    return this.#following.catchUp();
  }

  writing(ledgerId: string, fromSeq: number): void {
    this.#following.writing(ledgerId, fromSeq);
  }

  settled(ledgerId: string): void {
    this.#following.settled(ledgerId);
  }

  committed(ledgerId: string, entries: readonly LedgerEntry[]): void {
    this.#tide.committed();
    this.#pace.committed(entries.length);
    this.#following.committed(ledgerId, entries);
  }

  unsettled(ledgerId: string, entries: readonly LedgerEntry[]): void {
    this.#following.unsettled(ledgerId, entries);
  }

  claimed(ledgerId: string): void {
    this.#following.claimed(ledgerId);
  }

  newestAnswered(ledgerId: string): number | null {
    return this.#following.newestAnswered(ledgerId);
  }

  writtenLately(limit: number): readonly string[] {
    return this.#following.writtenLately(limit);
  }

  subscribed(subscription: SubscriptionRecord): void {
    this.#following.subscribed(subscription);
  }

  ended(subscriptionId: string): void {
    this.#following.ended(subscriptionId);
    this.#sender.drop(subscriptionId);
  }

  mayHaveEnded(subscriptionId: string, at: string): void {
    this.#following.mayHaveEnded(subscriptionId, at);
  }

  queued(subscriptionId: string): void {
    if (this.#parts.ownsShardOf(subscriptionId)) this.#sender.wake(subscriptionId);
    else this.#parts.tellOthers?.(subscriptionId);
  }

  /** Another node says that something may be due for the subscription. */
  heard(subscriptionId: string): void {
    this.#sender.wake(subscriptionId);
  }

  /**
   * Looks whether anything is due for the subscriptions that are this node's, and whether its ledgers have events that nobody told of: what was
   * told may not have arrived, and who wrote may not have been this node. Goes on in the background.
   */
  lookForDue(): void {
    this.#wakeSender(() => true);
    this.#following.look();
  }

  #wakeSender(isDue: (subscriptionId: string) => boolean): void {
    for (const { id } of this.#following.watches.all()) if (isDue(id)) this.#sender.wake(id);
  }

  /**
   * This node is to work for more ids than before: `isNew` says which, and no other node writes them any more. Finds the subscriptions that
   * other nodes have made meanwhile; `own` is called when that is done, and only from then on `ownsShardOf` may say so: a cursor must not move on
   * without them. Whom other nodes have let into these ledgers is found afterwards: until then every owner counts as let in.
   */
  async takeOver(isNew: (id: string) => boolean, own: () => void): Promise<void> {
    await this.#following.takeOver(isNew, own);
    this.#wakeSender(isNew);
  }

  /**
   * Another node works for these ids now. What is under way ends. The store keeps two nodes from writing over each other; but of a range that
   * both are recording at once, each as long as the log was when it looked, some deliveries may be recorded, and sent, twice.
   */
  giveUp(isGone: (id: string) => boolean): void {
    this.#following.giveUp(isGone);
    for (const { id } of this.#following.watches.all()) if (isGone(id)) this.#sender.drop(id);
  }

  /** The subscription, while it is in force. */
  subscription(id: string): SubscriptionRecord | undefined {
    return this.#following.watches.get(id);
  }

  /** Deliveries in memory. */
  get held(): number {
    return this.#sender.held;
  }

  /** Begins nothing new and waits for what is under way, at most as long as an attempt may take. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    // Clocks do not keep the process alive, and what is under way may be waiting for one.
    const alive = setInterval(() => {}, keptAliveEveryMs);
    try {
      await Promise.all([this.#following.stop(), this.#sender.stop()]);
      await this.#parts.poster[Symbol.asyncDispose]();
    } finally {
      clearInterval(alive);
    }
  }
}
