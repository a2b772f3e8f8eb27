import type { KeyObject } from 'node:crypto';
import type { ActorKeys, KeyLife, SigningKeys } from '../../actors/ledger/signing-keys.ts';
import { notFound } from '../../domain/errors.ts';
import { verifyingKey } from '../../domain/keys/verifying-key.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import { WeightedMap } from '../../runtime/collections/weighted-map.ts';
import { eventLoopBudget } from '../../runtime/limits/event-loop-budget.ts';
import type { KeyedMutex } from '../../store/keyed-mutex.ts';
import type { FindPage, RecordStore } from '../../store/record-store.ts';
import { shareAnswer } from '../calls/shared-answer.ts';
import { type ChangeOrder, type ChangingCollection, changingCollection, type Held } from '../records/collection.ts';
import type { VerifySignature } from '../signatures/verifying-threads.ts';
import type { Walk } from '../walking/walk.ts';
import { type ActorRecord, actorRules, type SigningKeyRecord } from './actor-record.ts';

/** How old a cached actor may be, ms. After this time all nodes know that a key is ending. */
export const actorFreshMs = 1_000;
/** Cached actors with small records: over 10,000 with one key each. */
const smallMaxBytes = 16 * 1024 * 1024;
/** Cached actors with large records, and their kept answers: ten with the largest record and no answer. */
const largeMaxBytes = 16 * 1024 * 1024;
/** Of a cached actor, beside its text. */
const cachedBaseBytes = 512;
/** Actors whose records are known to be large, and keys prepared for verifying. */
const rememberedMax = 10_000;
/**
 * Records of this size, of some 125 keys or of 42 with the longest reasons, are read within the bounds of long reads.
 * The largest has 1,000 keys: 0.3 M characters, or 0.8 M (1.3 MB of UTF-8) with the longest reasons.
 */
const largeChars = 32 * 1024;

interface Cached {
  readonly held: Held<ActorRecord>;
  readonly keys: ActorKeys;
  /** By name. Only of large records. */
  readonly answers: Map<string, object>;
  bytes: number;
  readAt: number;
  /** Position among reads and changes: a read counts from its begin, a change of this node from when it was stored. */
  order: number;
}

type ListedActor = Pick<ActorRecord, 'actorId' | 'role' | 'createdAt'>;

/**
 * Actors and their keys, with a cache of what was read in the last second. An actor without keys is always read from
 * the store: its first key must count at once on every node. A record that is read again is parsed only if it has
 * changed.
 */
export class Identities implements Pick<SigningKeys, 'fresh' | 'read'> {
  readonly #actors: ChangingCollection<ActorRecord>;
  readonly #now: () => number;
  readonly #verify: VerifySignature;
  /** Large records are apart: anybody may read them, and they must not take the places of those who sign. */
  readonly #small = new WeightedMap<string, Cached>(smallMaxBytes);
  readonly #large = new WeightedMap<string, Cached>(largeMaxBytes);
  /** Of large records, by actor: their characters, and the owner, which never changes. */
  readonly #largeActors = new RecentMap<string, { readonly chars: number; readonly owner: string | null }>(
    rememberedMax,
  );
  /** Reads of actors that were not cached, so that their size is not known before they end. */
  readonly #sizing = new Map<string, Promise<unknown>>();
  /** Reads of large records that have not begun yet. */
  readonly #coming = new Map<string, Promise<ActorRecord | null>>();
  readonly #refreshing = new Map<string, { readonly begunAt: number; readonly read: Promise<ActorRecord | null> }>();
  readonly #keyObjects = new RecentMap<string, KeyObject | null>(rememberedMax);
  #orders = 0;

  constructor(store: RecordStore, now: () => number, verify: VerifySignature, changes: KeyedMutex) {
    this.#actors = changingCollection(store, actorRules, changes);
    this.#now = now;
    this.#verify = verify;
  }

  /**
   * The actor as it is stored. Without `walk` it is read at once. With `walk` a large record is read within the event
   * loop budget, takes a place, and counts with its keys as so many records for the rate of the caller. Throws what
   * `Walk.readPage` throws.
   */
  async load(actorId: string, walk?: Walk): Promise<ActorRecord | null> {
    const sizing = walk === undefined ? undefined : this.#sizing.get(actorId);
    if (sizing !== undefined) await sizing;
    const chars = this.#largeActors.get(actorId)?.chars;
    if (chars === undefined) return walk === undefined ? this.#read(actorId) : this.#size(actorId);
    if (walk === undefined) return this.#readLarge(actorId, chars);
    const read = () => this.#readWhenFree(actorId, chars);
    return walk.readPage(read, (actor) => ({ count: actor?.keys.length ?? 0, chars }));
  }

  /**
   * The actor as it is stored, for one who asks for something that the cached actor lacks, perhaps in vain, or for
   * another actor than the caller: a large record is read within the event loop budget.
   */
  async reload(actorId: string): Promise<ActorRecord | null> {
    const chars = this.#largeActors.get(actorId)?.chars;
    return chars === undefined ? this.#read(actorId) : this.#readWhenFree(actorId, chars);
  }

  /** Those who come for an actor meanwhile wait, so that a large one is not read for all of them without a place. */
  #size(actorId: string): Promise<ActorRecord | null> {
    const read = this.#read(actorId);
    if (this.#cached(actorId) !== undefined) return read;
    const sizing = read
      .catch(() => {})
      .finally(() => {
        if (this.#sizing.get(actorId) === sizing) this.#sizing.delete(actorId);
      });
    this.#sizing.set(actorId, sizing);
    return read;
  }

  /** All that ask before the read begins share it. */
  #readWhenFree(actorId: string, chars: number): Promise<ActorRecord | null> {
    const coming = this.#coming.get(actorId);
    if (coming !== undefined) return coming;
    const wait = eventLoopBudget.whenFree();
    if (wait === null) return this.#readLarge(actorId, chars);
    const shared = wait.then(() => {
      this.#coming.delete(actorId);
      return this.#readLarge(actorId, chars);
    });
    this.#coming.set(actorId, shared);
    return shared;
  }

  #readLarge(actorId: string, chars: number): Promise<ActorRecord | null> {
    eventLoopBudget.use(1, chars);
    return this.#read(actorId);
  }

  async #read(actorId: string): Promise<ActorRecord | null> {
    const readAt = this.#now();
    const order = ++this.#orders;
    const held = await this.#actors.get(actorId, this.#cached(actorId)?.held);
    if (held === null) return null;
    this.#remember(held, readAt, order);
    return held.value;
  }

  /**
   * An answer that is made of this record alone. That of a large record is made once, and kept, with what transports
   * encode of it, while the record is cached. `name`: of all answers that `make` makes of a record.
   */
  answer<T extends object>(walk: Walk, actor: ActorRecord, name: string, make: () => T): T {
    const cached = this.#large.get(actor.actorId);
    if (cached?.held.value !== actor) return make();
    const kept = cached.answers.get(name);
    if (kept !== undefined) return kept as T;
    walk.keep(cached.held.chars);
    const made = shareAnswer(make(), () => this.#grow(cached));
    cached.answers.set(name, made);
    this.#grow(cached);
    return made;
  }

  /** The actor as it was at most a second ago. undefined if the cache lacks it, or if it has no keys. */
  known(actorId: string): ActorRecord | undefined {
    return this.#fresh(actorId)?.held.value;
  }

  /** Whether the actor is in memory. It may have changed since. */
  isCached(actorId: string): boolean {
    return this.#cached(actorId) !== undefined;
  }

  /** Whether this is the actor itself, or known to be the owner of an entity with a large record. */
  isKnownHolder(callerId: string, actorId: string): boolean {
    return callerId === actorId || callerId === this.#largeActors.get(actorId)?.owner;
  }

  /** The actor as it was at most a second before the call. null if there is none. */
  async recent(actorId: string): Promise<ActorRecord | null> {
    const fresh = this.#fresh(actorId);
    if (fresh !== undefined) return fresh.held.value;
    const hasKeys = this.#largeActors.get(actorId) !== undefined || this.#cached(actorId)?.keys.size;
    return hasKeys ? this.#refresh(actorId) : this.load(actorId);
  }

  /** The same of an actor that a call names beside its caller: a large record is read within the event loop budget. */
  async recentOther(actorId: string): Promise<ActorRecord | null> {
    return this.known(actorId) ?? this.reload(actorId);
  }

  /** Reads an actor that is known to have keys. Concurrent callers share one read. */
  #refresh(actorId: string): Promise<ActorRecord | null> {
    const now = this.#now();
    const under = this.#refreshing.get(actorId);
    if (under !== undefined && isFresh(under.begunAt, now)) return under.read;
    const read = this.load(actorId).finally(() => {
      if (this.#refreshing.get(actorId)?.read === read) this.#refreshing.delete(actorId);
    });
    this.#refreshing.set(actorId, { begunAt: now, read });
    return read;
  }

  /** Reads the store if the cache lacks the key: it may have been enrolled on another node. */
  async key(actorId: string, kid: string): Promise<SigningKeyRecord | undefined> {
    const named = (actor: ActorRecord | null) => actor?.keys.find((held) => held.kid === kid);
    return named(this.known(actorId) ?? (await this.recent(actorId))) ?? named(await this.reload(actorId));
  }

  create(actor: ActorRecord): Promise<boolean> {
    return this.#actors.create(actor);
  }

  /**
   * Changes an actor. The change counts at once on this node. `signal`, `order`: as for `update` of a collection.
   * Throws `not_found`, and what `change` and that `update` throw.
   */
  async update(
    actorId: string,
    change: (actor: ActorRecord) => ActorRecord,
    signal: AbortSignal | null,
    order?: ChangeOrder,
  ): Promise<ActorRecord> {
    let changedAt: number | null = null;
    const changeNow = (held: ActorRecord): ActorRecord => {
      const actor = change(held);
      changedAt = actor === held ? null : this.#now();
      return actor;
    };
    const changed = await this.#actors.update(actorId, changeNow, signal, order);
    if (changed === null) throw notFound('actor', 'actor_id');
    // Once it is stored it is known that nobody had changed the actor before that time. What was only read is older.
    if (changedAt !== null) {
      // Its version is not known: the next read parses it once more.
      const held = { version: '', value: changed, chars: JSON.stringify(changed).length };
      this.#remember(held, changedAt, ++this.#orders);
    }
    // A read that is under way may not have seen the change.
    this.#refreshing.delete(actorId);
    return changed;
  }

  /** The actors of a world, in the order of their creation. */
  async *list(walk: Walk, world: string, page: FindPage): AsyncGenerator<ListedActor> {
    for await (const { actorId, role, createdAt } of this.#actors.walk(walk, 'world', world, page)) {
      walk.keep(actorId.length + role.length + createdAt.length);
      yield { actorId, role, createdAt };
    }
  }

  fresh(actorId: string): ActorKeys | undefined {
    const keys = this.#fresh(actorId)?.keys;
    return keys === undefined || keys.size === 0 ? undefined : keys;
  }

  async read(actorId: string): Promise<ActorKeys> {
    const actor = await this.load(actorId);
    return actor === null ? new Map() : keysOf(actor);
  }

  /** Whether the signature (64 bytes) of a digest verifies under the key. */
  async verify(key: SigningKeyRecord, digest: Uint8Array, signature: Uint8Array, verify = this.#verify) {
    const ready = this.#keyObject(key);
    return ready !== null && verify(digest, signature, ready);
  }

  /** The key prepared for verifying. null if the stored key is not valid. */
  #keyObject(key: SigningKeyRecord): KeyObject | null {
    const known = this.#keyObjects.get(key.kid);
    if (known !== undefined) return known;
    const made = verifyingKey(key.publicKey);
    this.#keyObjects.set(key.kid, made);
    return made;
  }

  #cached(actorId: string): Cached | undefined {
    return this.#small.get(actorId) ?? this.#large.get(actorId);
  }

  #fresh(actorId: string): Cached | undefined {
    const cached = this.#cached(actorId);
    return cached !== undefined && isFresh(cached.readAt, this.#now()) && cached.held.value.keys.length > 0
      ? cached
      : undefined;
  }

  #remember(held: Held<ActorRecord>, readAt: number, order: number): void {
    const { value: actor, chars } = held;
    const { actorId } = actor;
    const isLarge = chars >= largeChars;
    if (isLarge) this.#largeActors.set(actorId, { chars, owner: actor.entity?.ownerActorId ?? null });
    const known = this.#cached(actorId);
    // A slow read must not replace the result of a later read, or of a change made here.
    if (known !== undefined && known.order > order) return;
    const cached =
      known?.held === held
        ? Object.assign(known, { readAt, order })
        : { held, keys: keysOf(actor), answers: new Map(), bytes: bytesAlone(held), readAt, order };
    const [its, other] = isLarge ? [this.#large, this.#small] : [this.#small, this.#large];
    other.delete(actorId);
    its.set(actorId, cached, cached.bytes);
  }

  /** Counts an answer, or what was encoded of one. If all become too heavy together, the actor is kept without them. */
  #grow(cached: Cached): void {
    const { actorId } = cached.held.value;
    if (this.#large.get(actorId) !== cached) return;
    cached.bytes += bytesOf(cached.held);
    if (cached.bytes > largeMaxBytes) {
      cached.answers.clear();
      cached.bytes = bytesAlone(cached.held);
    }
    this.#large.set(actorId, cached, cached.bytes);
  }
}

/** Memory of a record with its keys by kid, and at most that of what is made of it. */
function bytesOf({ chars }: Held<ActorRecord>): number {
  return 2 * chars;
}

function bytesAlone(held: Held<ActorRecord>): number {
  return cachedBaseBytes + bytesOf(held);
}

/** A time in the future means that the clock was set back since then: the age is unknown. */
function isFresh(readAt: number, now: number): boolean {
  return readAt <= now && readAt >= now - actorFreshMs;
}

function keysOf(actor: ActorRecord): ActorKeys {
  const keys = new Map<string, KeyLife>();
  for (const { kid, validFrom, revokedAt, endingSince } of actor.keys)
    keys.set(kid, { validFrom, revokedAt, isEnding: endingSince !== undefined });
  return keys;
}
