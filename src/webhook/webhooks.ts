import { type Clock, sleep } from '../actors/clock.ts';
import type { Outbox } from '../actors/outbox.ts';
import { isoTime } from '../domain/time.ts';
import type { Log } from '../log.ts';
import type { LedgerReading } from '../service/reading/ledger-reading.ts';
import type { SecretBox } from '../service/secret-box.ts';
import { answeredSeqsIn } from '../service/webhooks/answered-seqs.ts';
import { deliveriesIn } from '../service/webhooks/deliveries.ts';
import {
  type SubscriptionRecord,
  type Subscriptions,
  subscriptionsIn,
} from '../service/webhooks/subscription-record.ts';
import type { WebhookWork } from '../service/webhooks/webhook-work.ts';
import type { LedgerEntry, LedgerStore } from '../store/ledger-store.ts';
import type { RecordStore } from '../store/record-store.ts';
import { attempt } from './attempt.ts';
import { cursorsIn } from './cursor-record.ts';
import { mayReadEvent } from './event-access.ts';
import { EventBodies } from './event-bodies.ts';
import { Follower } from './follower.ts';
import type { Poster } from './http-post.ts';
import { LedgerCertainty } from './ledger-certainty.ts';
import { LedgerLook } from './ledger-look.ts';
import { LedgerWrites } from './ledger-writes.ts';
import { Pace, type PaceParts } from './pace.ts';
import { Sender } from './sender.ts';
import { Tide } from './tide.ts';
import { Watches } from './watches.ts';
import type { WebhookMeter } from './webhook-meter.ts';

const subscriptionsAtOnce = 500;
const retryMs = 1_000;
const keptAliveEveryMs = 1_000;
/** Main thread: listing a page of subscriptions or of ledgers. */
const pageCostMs = 3;
/** Every so many looks the lists of watched ledgers are read again too. */
const looksBetweenLists = 20;

export interface WebhookParts extends PaceParts {
  readonly ledgers: LedgerStore;
  readonly records: RecordStore;
  readonly reading: LedgerReading;
  readonly secrets: SecretBox;
  readonly poster: Poster;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: WebhookMeter;
  /** Whether this node works for the ledger or subscription of this id; on a node that stands alone always. */
  mine(id: string): boolean;
  /** Has the actor of a ledger on this node make certain what stands in it: answers its newest seq (Directory). */
  makeCertain(ledgerId: string): Promise<number>;
  /** Tells whoever works for a subscription that something may be due for it. null: there are no other nodes. */
  readonly tellOthers: ((subscriptionId: string) => void) | null;
}

/**
 * Webhooks of a node: follows the ledgers that are its own and sends for the subscriptions that are its own. Everything that must not be
 * lost is in the store: the logs, a cursor a ledger, the delivery records. What is here in memory is found again at start.
 */
export class Webhooks implements Outbox, WebhookWork, AsyncDisposable {
  readonly #parts: WebhookParts;
  readonly #subscriptions: Subscriptions;
  readonly #watches: Watches;
  readonly #certainty: LedgerCertainty;
  readonly #follower: Follower;
  readonly #sender: Sender;
  readonly #pace: Pace;
  readonly #tide: Tide;
  readonly #writes: LedgerWrites;
  readonly #look: LedgerLook;
  /** The changes of subscriptions that memory has; null: none were read. */
  #changes: string | null = null;
  #isListingAgain = false;
  #looks = 0;
  #catchingUp: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
    const { ledgers, records, clock, log, reading } = parts;
    const mayRead = (actorId: string, ledgerId: string, masterId: string | null) =>
      mayReadEvent(reading, actorId, ledgerId, masterId);
    const mine = (id: string) => parts.mine(id);
    this.#subscriptions = subscriptionsIn(records);
    this.#pace = new Pace(parts);
    this.#tide = new Tide({ clock, isBusy: () => this.#pace.isBusy });
    const riding = this.#tide.riding(records);
    const deliveries = deliveriesIn(riding);
    this.#writes = new LedgerWrites(() => clock.now());
    this.#watches = new Watches(ledgers, (ledgerId) => this.#follower.wake(ledgerId));
    this.#certainty = new LedgerCertainty({
      pace: this.#pace,
      clock,
      log,
      mine,
      newestAnswered: (ledgerId) => this.#writes.newestAnswered(ledgerId),
      makeCertain: (ledgerId) => parts.makeCertain(ledgerId),
      certain: (ledgerId) => this.#follower.wake(ledgerId),
    });
    this.#follower = new Follower({
      ledgers,
      cursors: cursorsIn(riding),
      deliveries,
      answeredSeqs: answeredSeqsIn(records),
      watches: this.#watches,
      certainty: this.#certainty,
      pace: this.#pace,
      clock,
      log,
      mine,
      facts: (ledgerId) => reading.ledgerFacts(ledgerId),
      underWayFrom: (ledgerId) => this.#writes.underWayFrom(ledgerId),
      upToDate: () => this.catchUp(),
      queued: (subscriptionId) => this.queued(subscriptionId),
      fannedOut: (count) => parts.meter.fannedOut(count),
    });
    this.#look = new LedgerLook({
      pace: this.#pace,
      log,
      watchedLedgers: () => this.#watches.watchedLedgers(),
      mine,
      look: (ledgerId) => this.#follower.look(ledgerId),
    });
    const bodies = new EventBodies(ledgers);
    this.#sender = new Sender({
      deliveries,
      pace: this.#pace,
      clock,
      log,
      subscription: (id) => this.#watches.get(id),
      mine,
      position: (ledgerId) => this.#follower.position(ledgerId),
      attempt: (subscription, delivery) =>
        attempt({ bodies, secrets: parts.secrets, poster: parts.poster, clock, mine, mayRead }, subscription, delivery),
      gone: (subscriptionId) => {
        this.ended(subscriptionId);
        return this.#again('ending a subscription', async () => {
          await this.#subscriptions.end(subscriptionId, isoTime(clock.now()), 'receiver');
        });
      },
      attempted: (outcome) => parts.meter.attempted(outcome),
    });
  }

  /** Looks through all subscriptions in force: whose ledgers are watched, and what waits to be sent. Goes on in the background. */
  start(): void {
    void this.#findSubscriptions().then(() => {
      this.#follower.open();
      this.#wakeSender();
    });
  }

  #findSubscriptions(): Promise<void> {
    return this.#again('finding subscriptions', () => this.#readSubscriptions());
  }

  async #readSubscriptions(): Promise<void> {
    const changes = await this.#subscriptions.changes();
    const inForce = new Set<string>();
    let after: SubscriptionRecord | null = null;
    for (;;) {
      await this.#pace.take(pageCostMs);
      const page: SubscriptionRecord[] = await this.#subscriptions.inForce(subscriptionsAtOnce, after);
      for (const subscription of page) {
        inForce.add(subscription.id);
        this.subscribed(subscription);
      }
      after = page.at(-1) ?? null;
      if (page.length < subscriptionsAtOnce) break;
    }
    await this.#dropEnded(inForce);
    this.#changes = changes;
  }

  /** What was not found in force has ended on another node, or was made here after the look. */
  async #dropEnded(inForce: ReadonlySet<string>): Promise<void> {
    for (const { id } of [...this.#watches.all()]) {
      if (inForce.has(id)) continue;
      const stored = await this.#subscriptions.get(id);
      if (stored === null || stored.endedAt !== null) this.ended(id);
    }
  }

  /** Reads the subscriptions again if other nodes have changed them since they were read last. One look at a time. */
  catchUp(): Promise<void> {
    if (this.#parts.tellOthers === null) return Promise.resolve();
    this.#catchingUp = this.#catchingUp.then(() =>
      this.#again('looking for new subscriptions', async () => {
        if ((await this.#subscriptions.changes()) !== this.#changes) await this.#readSubscriptions();
      }),
    );
    return this.#catchingUp;
  }

  writing(ledgerId: string, fromSeq: number): void {
    this.#writes.writing(ledgerId, fromSeq);
  }

  settled(ledgerId: string): void {
    this.#writes.settled(ledgerId);
    this.#follower.release(ledgerId);
  }

  committed(ledgerId: string, entries: readonly LedgerEntry[]): void {
    this.#tide.committed();
    this.#pace.committed(entries.length);
    this.#writes.committed(ledgerId, entries.at(-1)?.seq ?? 0);
    this.#watches.learn(ledgerId, entries);
    this.claimed(ledgerId);
  }

  unsettled(ledgerId: string, entries: readonly LedgerEntry[]): void {
    // Who reads the ledger by entries that do not stand after all is let in to none of it: each event is asked for.
    this.#watches.learn(ledgerId, entries);
    if (this.#watches.isWatched(ledgerId)) this.#certainty.ask(ledgerId);
  }

  claimed(ledgerId: string): void {
    if (this.#watches.isWatched(ledgerId)) this.#follower.wake(ledgerId);
  }

  newestAnswered(ledgerId: string): number | null {
    return this.#writes.newestAnswered(ledgerId);
  }

  writtenLately(limit: number): readonly string[] {
    return this.#writes.lately(limit);
  }

  subscribed(subscription: SubscriptionRecord): void {
    const isKnown = this.#watches.get(subscription.id) !== undefined;
    const isToList = this.#watches.add(subscription);
    // What another node told of it before it was known here was not heard.
    if (!isKnown) this.#sender.wake(subscription.id);
    if (!isToList) return;
    void this.#again('listing watched ledgers', () =>
      this.#watches.list(subscription.actorId, () => this.#pace.take(pageCostMs)),
    );
  }

  ended(subscriptionId: string): void {
    // Cursors of ledgers that nobody watches any more are removed.
    for (const ledgerId of this.#watches.remove(subscriptionId)) this.#follower.wake(ledgerId);
    this.#sender.drop(subscriptionId);
  }

  queued(subscriptionId: string): void {
    if (this.#parts.mine(subscriptionId)) this.#sender.wake(subscriptionId);
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
    this.#wakeSender();
    if (this.#parts.tellOthers === null) return;
    void this.#look.round();
    this.#looks += 1;
    if (this.#looks % looksBetweenLists !== 0) return;
    // Of a ledger that is watched already its own events say who was let in.
    this.#watches.doubt(() => false);
    void this.#listAgain();
  }

  #wakeSender(): void {
    for (const { id } of this.#watches.all()) this.#sender.wake(id);
  }

  /**
   * This node is to work for more ids than before: `isNew` says which, and no other node writes them any more. Finds the subscriptions that
   * other nodes have made meanwhile; `own` is called when that is done, and only from then on `mine` may say so: a cursor must not move on
   * without them. Whom other nodes have let into these ledgers is found afterwards: until then every owner counts as let in.
   */
  async takeOver(isNew: (id: string) => boolean, own: () => void): Promise<void> {
    this.#watches.doubt(isNew);
    void this.#listAgain();
    await this.#findSubscriptions();
    own();
    for (const ledgerId of this.#watches.watchedLedgers()) if (isNew(ledgerId)) this.#follower.wake(ledgerId);
    for (const { id } of this.#watches.all()) if (isNew(id)) this.#sender.wake(id);
  }

  /**
   * Another node works for these ids now. What is under way ends. The store keeps two nodes from writing over each other; but of a range that
   * both are recording at once, each as long as the log was when it looked, some deliveries may be recorded, and sent, twice.
   */
  giveUp(isGone: (id: string) => boolean): void {
    for (const ledgerId of this.#watches.watchedLedgers()) if (isGone(ledgerId)) this.#follower.forget(ledgerId);
    for (const { id } of this.#watches.all()) if (isGone(id)) this.#sender.drop(id);
  }

  /** Reads the lists in doubt again, one at a time however many doubts there are. */
  async #listAgain(): Promise<void> {
    if (this.#isListingAgain) return;
    this.#isListingAgain = true;
    await this.#again('listing watched ledgers again', async () => {
      const rest = () => this.#pace.take(pageCostMs);
      await rest();
      for (let actorId = this.#watches.nextDoubted(); actorId !== undefined; actorId = this.#watches.nextDoubted()) {
        await this.#watches.list(actorId, rest);
        await rest();
        if (this.#stopped) break;
      }
      // In the same turn as the last look at what is in doubt, so that none comes up unseen in between.
      this.#isListingAgain = false;
    });
  }

  /** The subscription, while it is in force. */
  subscription(id: string): SubscriptionRecord | undefined {
    return this.#watches.get(id);
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
      this.#certainty.stop();
      await Promise.all([this.#look.stop(), this.#follower.stop(), this.#sender.stop()]);
      await this.#parts.poster[Symbol.asyncDispose]();
    } finally {
      clearInterval(alive);
    }
  }

  /** Work that has to be done some time, whatever the store does now. */
  async #again(what: string, work: () => Promise<void>): Promise<void> {
    while (!this.#stopped) {
      try {
        return await work();
      } catch (error) {
        this.#parts.log.warn({ err: error }, `${what} failed; it is tried again`);
        await sleep(this.#parts.clock, retryMs);
      }
    }
  }
}
