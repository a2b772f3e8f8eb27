import { isoTime } from '../../domain/values/time.ts';
import type { BackgroundLimiter } from '../../runtime/background-limiter.ts';
import { type Clock, sleep } from '../../runtime/clock/clock.ts';
import {
  placeOf,
  type SubscriptionRecord,
  type Subscriptions,
  timeOfPlace,
} from '../../service/webhooks/subscription-record.ts';
import { type FindPage, TooManyDeleted } from '../../store/record-store.ts';
import { UnreadableRecord } from '../../store/unreadable-record.ts';
import type { SubscriptionIndex } from './subscription-index.ts';

const subscriptionsAtOnce = 500;
const pageCostMs = 3;
/** The longest rest between two readings: ledgers with new events may wait for it. */
const restMaxMs = 1_000;
/** The shortest part of the list that is read by itself, by the times of creation, ms. */
const partMinMs = 60_000;
/** How long after its first division the list is read in parts, ms: Cassandra may have forgotten what was deleted. */
const partsKeptMs = 3 * 60 * 60_000;

interface KnownSubscriptionsParts {
  readonly subscriptions: Subscriptions;
  readonly index: SubscriptionIndex;
  readonly limiter: BackgroundLimiter;
  readonly clock: Clock;
  readonly isShared: boolean;
  isStopped(): boolean;
  /** Retries work until it succeeds or the node stops. `what` names it in the log. */
  retryUntilStopped(what: string, work: () => Promise<void>): Promise<void>;
  added(subscriptionId: string): void;
  ended(subscriptionId: string): void;
}

/** Keeps the subscription index up to date with the store. */
export class KnownSubscriptions {
  readonly #parts: KnownSubscriptionsParts;
  /** Memory is up to date to this count of changes. null before the first read. */
  #changes: string | null = null;
  #isListingAgain = false;
  #catchingUp: Promise<void> = Promise.resolve();
  /** The check that begins once the running one has ended. */
  #nextCheck: Promise<void> | null = null;
  /** The end of the rest after the last reading, which is as long as the reading. ms since 1970, see restMaxMs. */
  #restsUntilMs = Number.NEGATIVE_INFINITY;
  /** Times of creation at which a part of the list ends and the next one begins, ms since 1970. */
  #partEnds: readonly number[] = [];
  #dividedMs = Number.NEGATIVE_INFINITY;

  constructor(parts: KnownSubscriptionsParts) {
    this.#parts = parts;
  }

  find(): Promise<void> {
    return this.#parts.retryUntilStopped('finding subscriptions', () => this.#read());
  }

  /**
   * Reads the subscriptions again if other nodes have changed them. One check runs at a time, and all calls meanwhile
   * share the next one: anybody with a key can change subscriptions all the time, and each reading is of all of them.
   * Once the node stops it resolves without a reading.
   */
  catchUp(): Promise<void> {
    const { subscriptions, retryUntilStopped, isShared } = this.#parts;
    if (!isShared) return Promise.resolve();
    this.#nextCheck ??= this.#catchingUp.then(() => {
      this.#nextCheck = null;
      return retryUntilStopped('looking for new subscriptions', async () => {
        if ((await subscriptions.changes()) !== this.#changes) await this.#readAfterRest();
      });
    });
    this.#catchingUp = this.#nextCheck;
    return this.#nextCheck;
  }

  /** The owner's ledgers are listed in the background. No effect on a known subscription. */
  add(subscription: SubscriptionRecord): void {
    const { index, limiter, retryUntilStopped, added } = this.#parts;
    const isKnown = index.get(subscription.id) !== undefined;
    const isToList = index.add(subscription);
    if (!isKnown) added(subscription.id);
    if (!isToList) return;
    void retryUntilStopped('listing watched ledgers', () =>
      index.list(subscription.actorId, () => limiter.take(pageCostMs)),
    );
  }

  /** See WebhookWork. Ending the subscription again makes its end certain. */
  mayHaveEnded(subscriptionId: string, at: string): void {
    const { subscriptions, retryUntilStopped, ended } = this.#parts;
    void retryUntilStopped('ending a subscription', async () => {
      await subscriptions.end(subscriptionId, at, 'owner');
      ended(subscriptionId);
    });
  }

  /** Reads the lists in doubt again in the background, one at a time. */
  listAgain(): void {
    if (this.#isListingAgain) return;
    this.#isListingAgain = true;
    void this.#parts.retryUntilStopped('listing watched ledgers again', () => this.#listDoubted());
  }

  async #readAfterRest(): Promise<void> {
    const { clock, isStopped } = this.#parts;
    const restMs = Math.min(restMaxMs, this.#restsUntilMs - clock.now());
    if (restMs > 0) await sleep(clock, restMs);
    if (!isStopped()) await this.#read();
  }

  async #read(): Promise<void> {
    const { subscriptions, clock } = this.#parts;
    const beganMs = clock.now();
    const changes = await subscriptions.changes();
    const inForce = new Set<string>();
    for await (const page of this.#pages()) {
      for (const subscription of page) {
        inForce.add(subscription.id);
        this.add(subscription);
      }
    }
    await this.#dropEnded(inForce);
    this.#changes = changes;
    this.#restsUntilMs = 2 * clock.now() - beganMs;
  }

  /** Of all active subscriptions. Many that have ended make the store unable to read the list but in parts. */
  async *#pages(): AsyncGenerator<readonly SubscriptionRecord[]> {
    const { subscriptions, limiter, clock } = this.#parts;
    const nowMs = clock.now();
    // A copy, because another reading may run.
    const ends = nowMs > this.#dividedMs + partsKeptMs ? [] : [...this.#partEnds];
    let after: FindPage['after'];
    for (let part = 0; part <= ends.length; ) {
      await limiter.take(pageCostMs);
      const endMs = ends[part];
      const before = endMs === undefined ? undefined : isoTime(endMs);
      const ofPart = { ...(after === undefined ? {} : { after }), ...(before === undefined ? {} : { before }) };
      let page: SubscriptionRecord[];
      try {
        page = await subscriptions.inForce({ limit: subscriptionsAtOnce, ...ofPart });
      } catch (error) {
        const middleMs = middleOf(after === undefined ? 0 : timeOfPlace(after.order), endMs ?? nowMs);
        if (!(error instanceof TooManyDeleted) || middleMs === null) throw error;
        if (ends.length === 0) this.#dividedMs = nowMs;
        ends.splice(part, 0, middleMs);
        this.#partEnds = [...ends];
        continue;
      }
      yield page;
      const last = page.at(-1);
      if (last !== undefined && page.length === subscriptionsAtOnce) after = placeOf(last);
      else {
        part += 1;
        if (before !== undefined) after = { order: before, id: '' };
      }
    }
  }

  /** A subscription that was not found active has ended on another node, or was created here after the read. */
  async #dropEnded(inForce: ReadonlySet<string>): Promise<void> {
    const { subscriptions, index, ended } = this.#parts;
    for (const { id } of [...index.all()]) {
      if (inForce.has(id)) continue;
      const stored = await subscriptions.get(id).catch(passOver);
      // A damaged record says nothing, so the subscription in memory stays.
      if (stored === null || (stored !== undefined && stored.endedAt !== null)) ended(id);
    }
  }

  async #listDoubted(): Promise<void> {
    const { index, limiter, isStopped } = this.#parts;
    const rest = () => limiter.take(pageCostMs);
    await rest();
    for (let actorId = index.nextDoubted(); actorId !== undefined; actorId = index.nextDoubted()) {
      await index.list(actorId, rest);
      await rest();
      if (isStopped()) break;
    }
    // There is no await since the last nextDoubted(), so that no doubt in between is missed.
    this.#isListingAgain = false;
  }
}

/** null: the part is too short to be divided. */
function middleOf(fromMs: number, endMs: number): number | null {
  return endMs - fromMs < partMinMs ? null : Math.round((fromMs + endMs) / 2);
}

function passOver(error: unknown): undefined {
  if (!(error instanceof UnreadableRecord)) throw error;
}
