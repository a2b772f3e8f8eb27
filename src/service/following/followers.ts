import { invalidField, LedgerError } from '../../domain/errors.ts';
import { isParty, type LedgerFacts, type MasterFacts } from '../../domain/event/facts.ts';
import { names } from '../../domain/event/projection.ts';
import { every } from '../../runtime/clock/clock.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { firstSeqAt } from '../reading/event-bounds.ts';
import { ScopeSeqs } from '../reading/scope-seqs.ts';
import { readEvent } from '../reading/stored-event.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import type { Walk } from '../walking/walk.ts';
import type { FollowersParts } from './follow-parts.ts';
import type { FollowQuery } from './follow-query.ts';
import type { FollowedEvent } from './followed-event.ts';
import { FollowedLedger } from './followed-ledger.ts';
import { Follower } from './follower.ts';
import { type FollowerSlot, FollowerSlots } from './follower-slots.ts';
import { type NewestShown, newestBatch, newestReadable, newestShown } from './newest-readable.ts';
import { firstStoredCheckMs, ReaderAccess, tooManyGrants } from './reader-access.ts';
import { retryHint, withRetryHint } from './retry-hint.ts';
import type { FollowStart } from './stream-position.ts';

/** How often due heartbeats and expired grants are checked for. */
const checkEveryMs = 250;
/** A checkpoint is made ready so long before the heartbeat that brings it. */
const checkpointLeadMs = 1_000;
/** How often an access is compared with what is stored. */
const storedCheckEveryMs = 60_000;
/** Seqs of a master that are read at once to find where its follower begins. */
const seqsAtOnce = 4_000;

/** What is followed: a ledger, or a master of it. */
interface FollowTarget {
  readonly facts: LedgerFacts;
  readonly master: MasterFacts | null;
}

/** The streams of a node that follow ledgers and masters. */
export class Followers implements Disposable {
  readonly #parts: FollowersParts;
  readonly #ledgers = new Map<string, { readonly ledger: FollowedLedger; users: number }>();
  /** In the order of their next heartbeats. */
  readonly #followers = new Set<Follower>();
  /** Those of them whose access may end. */
  readonly #granted = new Set<Follower>();
  readonly #slots: FollowerSlots;
  /** Calls whose streams have not begun yet. */
  readonly #beginning = new Set<Call>();
  /** null while no stream is open. */
  #cancelChecks: (() => void) | null = null;
  #isDraining = false;

  constructor(parts: FollowersParts) {
    this.#parts = parts;
    this.#slots = new FollowerSlots(parts);
  }

  get count(): number {
    return this.#slots.count;
  }

  /** Follows a ledger for the caller. Throws what a list of its events would throw, `overloaded` or `unavailable`. */
  followLedger(call: Call, ledgerId: string, query: FollowQuery): Promise<Follower> {
    const { reading } = this.#parts;
    return this.#follow(call, query, async (walk, actorId) => {
      const { facts } = await reading.visibleLedger(walk, ledgerId, actorId);
      return { facts, master: null };
    });
  }

  followMaster(call: Call, masterId: string, query: FollowQuery): Promise<Follower> {
    const { reading } = this.#parts;
    return this.#follow(call, query, async (_walk, actorId) => {
      const { facts: master, ledger } = await reading.readableMaster(masterId, actorId);
      return { facts: ledger, master };
    });
  }

  async #follow(
    call: Call,
    query: FollowQuery,
    find: (walk: Walk, actorId: string) => Promise<FollowTarget>,
  ): Promise<Follower> {
    const { actorId } = callerOf(call);
    if (this.#isDraining) throw this.#draining();
    const slot = this.#slots.take(actorId, call);
    this.#beginning.add(call);
    let ledger: FollowedLedger | null = null;
    try {
      const target = await call.partWalk((walk) => find(walk, actorId));
      ledger = this.#hold(target.facts.ledgerId);
      await ledger.open();
      const follower = await this.#begin(slot, call, ledger, target, query);
      follower.checkAccess();
      return follower;
    } catch (error) {
      if (ledger !== null) this.#letGo(ledger);
      this.#slots.leave(slot);
      throw error;
    } finally {
      this.#beginning.delete(call);
    }
  }

  async #begin(
    slot: FollowerSlot,
    call: Call,
    ledger: FollowedLedger,
    target: FollowTarget,
    query: FollowQuery,
  ): Promise<Follower> {
    const { reading, clock, monotonicMs, random } = this.#parts;
    const { actorId } = slot;
    const { facts, master } = target;
    const masterId = master?.masterId ?? null;
    // From here on every change of a grant is noted. What is stored is read afterwards, so that none is missed.
    const changed: FollowedEvent[] = [];
    const noting = { grantChanged: (event: FollowedEvent): void => void changed.push(event) };
    ledger.listen(actorId, noting);
    let access: ReaderAccess | null = null;
    try {
      const baseSeq = ledger.shownSeq;
      return await call.partWalk(async (walk) => {
        const grants = isParty(facts, actorId) ? [] : await reading.heldGrants(walk, facts, actorId, masterId);
        const own = new ReaderAccess(facts, actorId, masterId, grants, baseSeq, clock.now());
        own.checkMs = monotonicMs() + firstStoredCheckMs;
        access = ledger.accesses.take(own, grants, clock.now());
        if (access === null) throw withRetryHint(tooManyGrants(), random);
        const start = await this.#start(walk, target, query, access);
        walk.check();
        const left = (one: Follower) => this.#left(one, slot);
        const follower = new Follower(this.#parts, ledger, call, { facts, masterId }, query, access, start, left);
        slot.follower = follower;
        for (const event of changed) follower.grantChanged(event);
        this.#add(ledger, follower);
        return follower;
      });
    } catch (error) {
      if (access !== null) ledger.accesses.leave(access);
      throw error;
    } finally {
      ledger.unlisten(actorId, noting);
    }
  }

  async #start(
    walk: Walk,
    { facts, master }: FollowTarget,
    query: FollowQuery,
    access: ReaderAccess,
  ): Promise<FollowStart> {
    const { ledgers, reading, heads } = this.#parts;
    const { ledgerId } = facts;
    const store = boundedLedgers(walk, ledgers);
    const head = await store.head(ledgerId);
    const headSeq = head?.seq ?? -1;
    heads.learn(ledgerId, headSeq);
    const closed = await reading.closedAt(ledgerId, master?.masterId ?? null);
    const closedSeq = closed.masterSeq ?? closed.ledgerSeq;
    const { after } = query;
    if (after === null) {
      const readsAll = master === null && access.isWhole;
      const newest = readsAll ? null : await newestReadable(store, ledgerId, access, headSeq);
      return { nextSeq: headSeq + 1, newest, closedSeq };
    }
    const place =
      master === null
        ? { nextSeq: after + 1, newest: null }
        : after === -1
          ? { nextSeq: master.createdSeq, newest: null }
          : await behindMasterSeq(store, ledgerId, master.masterId, after, headSeq);
    if (place === null || place.nextSeq > headSeq + 1) {
      const field = master === null ? 'after_seq' : 'after_master_seq';
      throw invalidField(field, 'the place of an event that exists, or -1');
    }
    const { from } = query;
    const fromSeq = from === null ? 0 : await firstSeqAt(store, ledgerId, headSeq, (createdAt) => createdAt >= from);
    return fromSeq <= place.nextSeq
      ? { ...place, closedSeq }
      : { nextSeq: fromSeq, newest: null, closedSeq: closedSeq === null ? null : Math.max(closedSeq, fromSeq - 1) };
  }

  #hold(ledgerId: string): FollowedLedger {
    const held = this.#ledgers.get(ledgerId) ?? { ledger: new FollowedLedger(ledgerId, this.#parts), users: 0 };
    held.users += 1;
    this.#ledgers.set(ledgerId, held);
    return held.ledger;
  }

  #letGo(ledger: FollowedLedger): void {
    const held = this.#ledgers.get(ledger.ledgerId);
    if (held === undefined) return;
    held.users -= 1;
    if (held.users > 0) return;
    this.#ledgers.delete(ledger.ledgerId);
    ledger.close();
  }

  #add(ledger: FollowedLedger, follower: Follower): void {
    ledger.add(follower);
    if (follower.access.isWhole) ledger.checkpoints.add(follower.masterId);
    this.#followers.add(follower);
    if (follower.access.mayEnd) this.#granted.add(follower);
    this.#cancelChecks ??= every(this.#parts.clock, checkEveryMs, () => this.#check());
  }

  #left(follower: Follower, slot: FollowerSlot): void {
    const { ledger, access } = follower;
    ledger.remove(follower);
    if (access.isWhole) ledger.checkpoints.remove(follower.masterId);
    ledger.accesses.leave(access);
    this.#followers.delete(follower);
    this.#granted.delete(follower);
    if (this.#followers.size === 0) this[Symbol.dispose]();
    this.#letGo(ledger);
    this.#slots.leave(slot);
    this.#parts.meter.ended(follower.reason);
  }

  #check(): void {
    const { clock, monotonicMs, heartbeatMs } = this.#parts;
    const monotonic = monotonicMs();
    for (const follower of this.#followers) {
      const leftMs = follower.beatMs + heartbeatMs - monotonic;
      if (leftMs > checkpointLeadMs) break;
      follower.prepareBeat();
      if (leftMs > 0) continue;
      this.#followers.delete(follower);
      this.#followers.add(follower);
      follower.beat(monotonic);
    }
    const nowMs = clock.now();
    for (const follower of this.#granted) {
      const { access } = follower;
      if (access.faultFromMs <= nowMs) follower.checkAccess();
      if (access.checkMs > monotonic) continue;
      access.checkMs = monotonic + storedCheckEveryMs;
      follower.checkStored().then(
        () => {
          access.retryMs = firstStoredCheckMs;
        },
        () => {
          // The store does not answer, or the stream has ended, and others may have the same access.
          access.checkMs = monotonicMs() + access.retryMs;
          access.retryMs = Math.min(2 * access.retryMs, storedCheckEveryMs);
        },
      );
    }
  }

  /** This node stops: each stream ends, with a hint when to come back. */
  drain(): void {
    this.#isDraining = true;
    for (const follower of this.#followers) follower.end(this.#draining(), 'draining');
    for (const call of this.#beginning) call.endWith(this.#draining());
  }

  #draining(): LedgerError {
    const message = 'This node is stopping: resume the stream behind the last message, after retry_after_ms.';
    return new LedgerError('unavailable', message, retryHint(this.#parts.random));
  }

  [Symbol.dispose](): void {
    this.#cancelChecks?.();
    this.#cancelChecks = null;
  }
}

/** The place behind an event of a master; null if there is no such event. */
async function behindMasterSeq(
  store: ReturnType<typeof boundedLedgers>,
  ledgerId: string,
  masterId: string,
  after: number,
  headSeq: number,
): Promise<{ readonly nextSeq: number; readonly newest: NewestShown | null } | null> {
  const scope = names.masterEvents(masterId);
  const atOnce = Math.min(seqsAtOnce, after + 1);
  const seqs = new ScopeSeqs(store, { ledgerId, scopes: [scope], from: 0, descending: false, atOnce });
  await seqs.skip(after);
  const [found] = await seqs.take(1);
  if (found === undefined) {
    for await (const event of newestBatch(store, ledgerId, headSeq))
      if (event.master?.id === masterId && event.master.seq === after)
        return { nextSeq: event.seq + 1, newest: newestShown(event) };
    return null;
  }
  const [entry] = await store.read(ledgerId, found.seq, 1, Number.POSITIVE_INFINITY);
  const event = entry === undefined ? null : readEvent(entry, { ledgerId, scopes: [scope] }, []);
  return { nextSeq: found.seq + 1, newest: event === null ? null : newestShown(event) };
}
