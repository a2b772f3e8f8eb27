import type { CommitListener } from '../actors/ledger/commit-listener.ts';
import { isoTime } from '../domain/values/time.ts';
import { sleep } from '../runtime/clock/clock.ts';
import { answeredSeqsIn } from '../service/webhooks/answered-seqs.ts';
import { deliveriesIn } from '../service/webhooks/deliveries.ts';
import { type SubscriptionRecord, subscriptionsIn } from '../service/webhooks/subscription-record.ts';
import type { WebhookWork } from '../service/webhooks/webhook-work.ts';
import type { LedgerEntry } from '../store/ledger-store.ts';
import { BackgroundLimiter } from './background-limiter.ts';
import { type AttemptParts, attempt } from './send/attempt.ts';
import { EventBodies } from './send/event-bodies.ts';
import { Sender } from './send/sender.ts';
import { cursorsIn } from './tail/cursor-record.ts';
import { LogTailer } from './tail/log-tailer.ts';
import type { WebhookParts } from './webhook-parts.ts';

/** Pause before failed work is retried. */
const retryMs = 1_000;
const keptAliveEveryMs = 1_000;

/**
 * The webhooks of a node: tails the ledgers and sends for the subscriptions whose shards it runs. Everything that must
 * not be lost is in the store: the logs, a cursor for each ledger, the delivery records. Memory is rebuilt at start.
 */
export class Webhooks implements CommitListener, WebhookWork, AsyncDisposable {
  readonly #parts: WebhookParts;
  readonly #limiter: BackgroundLimiter;
  readonly #tailer: LogTailer;
  readonly #sender: Sender;
  #stopped = false;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
    const { ledgers, records, reading, secrets, poster, clock, log, meter } = parts;
    const ownsShardOf = (id: string) => parts.ownsShardOf(id);
    const subscriptions = subscriptionsIn(records);
    this.#limiter = new BackgroundLimiter(parts);
    const shared = {
      deliveries: deliveriesIn(records, () => clock.now()),
      limiter: this.#limiter,
      clock,
      log,
      ownsShardOf,
    };
    this.#tailer = new LogTailer({
      ...shared,
      ledgers,
      cursors: cursorsIn(records),
      answeredSeqs: answeredSeqsIn(records),
      subscriptions,
      retryUntilStopped: (what, work) => this.#retryUntilStopped(what, work),
      isShared: parts.tellOthers !== null,
      isStopped: () => this.#stopped,
      facts: (ledgerId) => reading.ledgerFacts(ledgerId),
      readBarrier: (ledgerId) => parts.readBarrier(ledgerId),
      // Messages of other nodes about a subscription are ignored before it is known.
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
      mayRead: (actorId, ledgerId, masterId) => reading.mayReadEvent(actorId, ledgerId, masterId),
    };
    this.#sender = new Sender({
      ...shared,
      subscription: (id) => this.subscription(id),
      position: (ledgerId) => this.#tailer.position(ledgerId),
      attempt: (subscription, delivery) => attempt(attemptParts, subscription, delivery),
      gone: (subscriptionId) => {
        this.ended(subscriptionId);
        const at = isoTime(clock.now());
        return this.#retryUntilStopped('ending a subscription', async () => {
          await subscriptions.end(subscriptionId, at, 'receiver');
        });
      },
      attempted: (outcome) => meter.attempted(outcome),
    });
  }

  /** Finds all active subscriptions, then tails and sends in the background. */
  start(): void {
    void this.#tailer.start().then(() => this.#wakeSender(() => true));
  }

  /** Reads the subscriptions again if other nodes have changed them since they were read last. */
  catchUp(): Promise<void> {
    return this.#tailer.catchUp();
  }

  writing(ledgerId: string, fromSeq: number): void {
    this.#tailer.writing(ledgerId, fromSeq);
  }

  settled(ledgerId: string): void {
    this.#tailer.settled(ledgerId);
  }

  committed(ledgerId: string, entries: readonly LedgerEntry[]): void {
    this.#limiter.committed(entries.length);
    this.#tailer.committed(ledgerId, entries);
  }

  unsettled(ledgerId: string, entries: readonly LedgerEntry[]): void {
    this.#tailer.unsettled(ledgerId, entries);
  }

  claimed(ledgerId: string): void {
    this.#tailer.claimed(ledgerId);
  }

  newestAnswered(ledgerId: string): number | null {
    return this.#tailer.newestAnswered(ledgerId);
  }

  writtenLately(limit: number): readonly string[] {
    return this.#tailer.writtenLately(limit);
  }

  subscribed(subscription: SubscriptionRecord): void {
    this.#tailer.subscribed(subscription);
  }

  ended(subscriptionId: string): void {
    this.#tailer.ended(subscriptionId);
    this.#sender.drop(subscriptionId);
  }

  mayHaveEnded(subscriptionId: string, at: string): void {
    this.#tailer.mayHaveEnded(subscriptionId, at);
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
   * Looks for due deliveries of this node's subscriptions, and for events of its ledgers that other nodes wrote:
   * messages between nodes get lost. Continues in the background.
   */
  lookForDue(): void {
    this.#wakeSender(() => true);
    this.#tailer.scan();
  }

  #wakeSender(isDue: (subscriptionId: string) => boolean): void {
    for (const { id } of this.#tailer.index.all()) if (isDue(id)) this.#sender.wake(id);
  }

  /** Retries failed work until it succeeds or this node stops. `what` names the work in the log. */
  async #retryUntilStopped(what: string, work: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#parts;
    while (!this.#stopped) {
      try {
        return await work();
      } catch (error) {
        log.warn({ err: error }, `${what} failed; it is tried again`);
        await sleep(clock, retryMs);
      }
    }
  }

  /**
   * This node takes over more ids: `isNew` says which. No other node writes them any more. Finds the subscriptions that
   * other nodes have created meanwhile, and then calls `own`. `ownsShardOf` may be true for them only from then on: a
   * cursor must not move without these subscriptions. New readers of the ledgers are found afterwards.
   */
  async takeOver(isNew: (id: string) => boolean, own: () => void): Promise<void> {
    await this.#tailer.takeOver(isNew, own);
    this.#wakeSender(isNew);
  }

  /**
   * Another node has taken these ids over. Running work ends. The store keeps the nodes from overwriting each other. If
   * both record the same range at once, some deliveries may be recorded, and sent, twice.
   */
  giveUp(isGone: (id: string) => boolean): void {
    this.#tailer.giveUp(isGone);
    for (const { id } of this.#tailer.index.all()) if (isGone(id)) this.#sender.drop(id);
  }

  /** The subscription, while it is active. */
  subscription(id: string): SubscriptionRecord | undefined {
    return this.#tailer.index.get(id);
  }

  /** The number of deliveries in memory. */
  get held(): number {
    return this.#sender.held;
  }

  /** Starts nothing new, and waits for running work: at most as long as an attempt may take. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    // Timers of the clock do not keep the process alive, and running work may wait for one.
    const alive = setInterval(() => {}, keptAliveEveryMs);
    try {
      await Promise.all([this.#tailer.stop(), this.#sender.stop()]);
      await this.#parts.poster[Symbol.asyncDispose]();
    } finally {
      clearInterval(alive);
    }
  }
}
