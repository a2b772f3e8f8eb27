import type { CommitListener } from '../actors/ledger/commit-listener.ts';
import { isoTime } from '../domain/values/time.ts';
import { BackgroundLimiter, type BackgroundLimiterParts } from '../runtime/background-limiter.ts';
import { type Clock, sleep } from '../runtime/clock/clock.ts';
import type { MemoryBudget } from '../runtime/limits/memory-budget.ts';
import type { Log } from '../runtime/telemetry/log.ts';
import type { LedgerReading } from '../service/reading/ledger-reading.ts';
import type { LinkStore } from '../service/reading/master-search.ts';
import type { SecretBox } from '../service/records/secret-box.ts';
import { answeredSeqsIn } from '../service/webhooks/answered-seqs.ts';
import { deliveriesIn } from '../service/webhooks/deliveries.ts';
import { type SubscriptionRecord, subscriptionsIn } from '../service/webhooks/subscription-record.ts';
import type { WebhookWork } from '../service/webhooks/webhook-work.ts';
import type { LedgerEntry, LedgerStore } from '../store/ledger-store.ts';
import type { RecordStore } from '../store/record-store.ts';
import type { Poster } from './post/http-post.ts';
import { attempt } from './send/attempt.ts';
import { EventBodies } from './send/event-bodies.ts';
import { Sender } from './send/sender.ts';
import { cursorsIn } from './tail/cursor-record.ts';
import { InFlightWrites } from './tail/in-flight-writes.ts';
import { KnownSubscriptions } from './tail/known-subscriptions.ts';
import { LedgerTail } from './tail/ledger-tail.ts';
import { SubscriptionIndex } from './tail/subscription-index.ts';
import { TailScan } from './tail/tail-scan.ts';
import type { WebhookMeter } from './webhook-meter.ts';

/** Pause before failed work is retried. */
const retryMs = 1_000;
const keptAliveEveryMs = 1_000;
/** After so many scans, the lists of watched ledgers are read again. */
const scansBetweenLists = 20;

/** The share of the main thread's time for webhooks while appends fill the machine. */
const busyShare = 0.015;
/** The same while few appends come to a full machine: one owner can have a thousand deliveries for each of them. */
const fullShare = 0.3;

/** Main thread time of checking a delegate's grant of a master, measured. */
const masterCostMs = 0.03;

export interface WebhookParts extends Omit<BackgroundLimiterParts, 'busyShare' | 'fullShare'> {
  readonly ledgers: LedgerStore;
  readonly records: RecordStore;
  readonly memory: MemoryBudget;
  readonly reading: LedgerReading;
  readonly secrets: SecretBox;
  readonly poster: Poster;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: WebhookMeter;
  /** Active subscriptions of all actors. What the store has beyond it is known, and delivered, all the same. */
  readonly subscriptionsMax: number;
  /** Whether this node works for the ledger or subscription with this id. */
  ownsShardOf(id: string): boolean;
  /** See Directory. */
  readBarrier(ledgerId: string): Promise<number>;
  /** Tells the node that sends for a subscription that something may be due. null: there are no other nodes. */
  readonly tellOthers: ((subscriptionId: string) => void) | null;
}

/**
 * Tails the ledgers and sends for the subscriptions whose shards this node runs. What must not be lost is in the store:
 * the logs, a cursor for each ledger, the delivery records. Memory is rebuilt at start.
 */
export class Webhooks implements CommitListener, WebhookWork, AsyncDisposable {
  readonly #parts: WebhookParts;
  readonly #limiter: BackgroundLimiter;
  readonly #index: SubscriptionIndex;
  readonly #subscriptions: KnownSubscriptions;
  readonly #writes: InFlightWrites;
  readonly #tail: LedgerTail;
  readonly #scan: TailScan;
  readonly #sender: Sender;
  #scanCount = 0;
  #stopped = false;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
    const { ledgers, records, reading, memory, secrets, poster, clock, log, meter, ownsShardOf, readBarrier } = parts;
    const subscriptions = subscriptionsIn(records);
    const limiter = new BackgroundLimiter({ ...parts, busyShare, fullShare });
    const index = new SubscriptionIndex(ledgers, (ledgerId) => this.#tail.wake(ledgerId));
    const writes = new InFlightWrites(() => clock.now());
    const deliveries = deliveriesIn(records, memory, () => clock.now());
    const shared = { ledgers, deliveries, index, limiter, clock, log, ownsShardOf };
    this.#limiter = limiter;
    this.#index = index;
    this.#writes = writes;
    this.#subscriptions = new KnownSubscriptions({
      ...shared,
      subscriptions,
      retryUntilStopped: (what, work) => this.#retryUntilStopped(what, work),
      isShared: parts.tellOthers !== null,
      isStopped: () => this.#stopped,
      // Messages of other nodes about a subscription are ignored before it is known.
      added: (subscriptionId) => this.#sender.wake(subscriptionId),
      ended: (subscriptionId) => this.ended(subscriptionId),
    });
    this.#tail = new LedgerTail({
      ...shared,
      cursors: cursorsIn(records),
      answeredSeqs: answeredSeqsIn(records),
      facts: (ledgerId) => reading.ledgerFacts(ledgerId),
      underWayFrom: (ledgerId) => writes.underWayFrom(ledgerId),
      newestAnswered: (ledgerId) => writes.newestAnswered(ledgerId),
      readBarrier,
      upToDate: () => this.catchUp(),
      queued: (subscriptionId) => this.queued(subscriptionId),
      fannedOut: (count) => meter.fannedOut(count),
    });
    this.#scan = new TailScan({
      ...shared,
      watchedLedgers: () => index.watchedLedgers(),
      scanLedger: (ledgerId) => this.#tail.scan(ledgerId),
    });
    const links = throttledLinks(ledgers, limiter, (ledgerId) => this.#tail.position(ledgerId));
    const attemptParts = {
      bodies: new EventBodies(ledgers, memory),
      secrets,
      poster,
      clock,
      mayStillSend: (id: string) => ownsShardOf(id) && index.get(id) !== undefined,
      mayRead: (actorId: string, ledgerId: string, masterId: string | null) =>
        reading.mayReadEvent(actorId, ledgerId, masterId, links),
    };
    this.#sender = new Sender({
      ...shared,
      memory,
      subscription: (id) => index.get(id),
      position: (ledgerId) => this.#tail.position(ledgerId),
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

  /** Works in the background. */
  start(): void {
    void this.#subscriptions.find().then(() => {
      this.#warnBeyondBound();
      this.#tail.open();
      this.#wakeSender(() => true);
    });
  }

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
    this.#limiter.committed(entries.length);
    this.#writes.committed(ledgerId, entries.at(-1)?.seq ?? 0);
    this.#index.learn(ledgerId, entries);
    this.claimed(ledgerId);
  }

  batchInDoubt(ledgerId: string, entries: readonly LedgerEntry[]): void {
    // If the entries do not stand, the index only knows readers too many: access is checked for each event.
    this.#index.learn(ledgerId, entries);
    if (this.#index.isWatched(ledgerId)) this.#tail.askBarrier(ledgerId);
  }

  claimed(ledgerId: string): void {
    if (this.#index.isWatched(ledgerId)) this.#tail.wake(ledgerId);
  }

  newestAnswered(ledgerId: string): number | null {
    return this.#writes.newestAnswered(ledgerId);
  }

  writtenLately(limit: number): readonly string[] {
    return this.#writes.lately(limit);
  }

  subscribed(subscription: SubscriptionRecord): void {
    this.#subscriptions.add(subscription);
  }

  ended(subscriptionId: string): void {
    // The tail removes the cursors of ledgers that have no subscription any more.
    for (const ledgerId of this.#index.remove(subscriptionId)) this.#tail.wake(ledgerId);
    this.#sender.drop(subscriptionId);
  }

  mayHaveEnded(subscriptionId: string, at: string): void {
    this.#subscriptions.mayHaveEnded(subscriptionId, at);
  }

  queued(subscriptionId: string): void {
    if (this.#parts.ownsShardOf(subscriptionId)) this.#sender.wake(subscriptionId);
    else this.#parts.tellOthers?.(subscriptionId);
  }

  heard(subscriptionId: string): void {
    this.#sender.wake(subscriptionId);
  }

  /** Looks for due deliveries, and for events that other nodes wrote: messages between nodes get lost. */
  lookForDue(): void {
    this.#wakeSender(() => true);
    if (this.#parts.tellOthers === null) return;
    void this.#scan.round();
    this.#scanCount += 1;
    if (this.#scanCount % scansBetweenLists !== 0) return;
    // The events of a watched ledger show its new readers, so no such ledger is in doubt.
    this.#index.doubt(() => false);
    this.#subscriptions.listAgain();
  }

  #warnBeyondBound(): void {
    const { known, max } = this.subscriptionCount();
    if (known <= max) return;
    const what = 'the store has more webhook subscriptions than SUBSCRIPTIONS_MAX: all are served, and none is added';
    this.#parts.log.warn({ known, max }, what);
  }

  #wakeSender(isDue: (subscriptionId: string) => boolean): void {
    for (const { id } of this.#index.all()) if (isDue(id)) this.#sender.wake(id);
  }

  /** Retries work until it succeeds or this node stops. `what` names it in the log. */
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
    this.#index.doubt(isNew);
    this.#subscriptions.listAgain();
    await this.#subscriptions.find();
    own();
    for (const ledgerId of this.#index.watchedLedgers()) if (isNew(ledgerId)) this.#tail.wake(ledgerId);
    this.#wakeSender(isNew);
  }

  /**
   * Another node has taken these ids over. Running work ends. The store keeps the nodes from overwriting each other. If
   * both record the same range at once, some deliveries may be recorded, and sent, twice.
   */
  giveUp(isGone: (id: string) => boolean): void {
    for (const ledgerId of this.#index.watchedLedgers()) if (isGone(ledgerId)) this.#tail.forget(ledgerId);
    for (const { id } of this.#index.all()) if (isGone(id)) this.#sender.drop(id);
  }

  subscription(id: string): SubscriptionRecord | undefined {
    return this.#index.get(id);
  }

  subscriptionCount(): { readonly known: number; readonly max: number } {
    return { known: this.#index.count, max: this.#parts.subscriptionsMax };
  }

  get watchedLedgers(): number {
    return this.#index.watchedCount;
  }

  get held(): number {
    return this.#sender.held;
  }

  /** Starts nothing new, and waits for running work: at most as long as an attempt may take. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    // Timers of the clock do not keep the process alive, and running work may wait for one.
    const keepAlive = setInterval(() => {}, keptAliveEveryMs);
    try {
      await Promise.all([this.#scan.stop(), this.#tail.stop(), this.#sender.stop()]);
      await this.#parts.poster[Symbol.asyncDispose]();
    } finally {
      clearInterval(keepAlive);
    }
  }
}

/**
 * A LinkStore whose reads of lists wait for the limiter. `position`: the seq that the ledger's cursor has reached. A
 * cursor passes an event only after its changes can be read.
 */
function throttledLinks(
  ledgers: LedgerStore,
  limiter: BackgroundLimiter,
  position: (ledgerId: string) => Promise<number>,
): LinkStore {
  return {
    projectedBefore: position,
    cell: (key) => ledgers.cell(key),
    lines: async (list, page) => {
      const lines = await ledgers.lines(list, page);
      await limiter.take(lines.length * masterCostMs);
      return lines;
    },
  };
}
