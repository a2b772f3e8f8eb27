import { LedgerError } from '../../domain/errors.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { isParty, type LedgerFacts } from '../../domain/event/facts.ts';
import type { GrantTerms } from '../../domain/event/grant.ts';
import { type ActorGrantChange, names } from '../../domain/event/projection.ts';
import { type GrantObject, partialReaderScopes, readRule } from '../../domain/ledger/permission.ts';
import type { HeldGrant } from '../reading/ledger-reading.ts';
import type { GrantsMemory } from './grants-memory.ts';

/** What a grant holds in memory while it is known: 180 bytes as measured, rounded up to units of the budget. */
export const grantBytes = 256;
/** From the start of an access to its first comparison with what is stored, and after one that failed. */
export const firstStoredCheckMs = 1_000;
/** When a grant ends that was revoked or never given. */
const ended = Number.NEGATIVE_INFINITY;

/**
 * On what the access rests. 'party': on no grant, so it never ends. 'whole': on grants of all that is followed, a
 * ledger or one master. 'masters': on grants of single masters.
 */
type Basis = 'party' | 'whole' | 'masters';

interface KnownGrant {
  /** Seq of the event that changed it last; -1 if none did. */
  version: number;
  /** When it expires, ms since 1970; or `ended`. Until then it lets the actor read, whatever its role. */
  endsMs: number;
  /** Whether the access rests on it. */
  isUsed: boolean;
}

/**
 * The access of a follower, kept from the log: all grants of a ledger are events of that ledger (ADR 13). It begins
 * with what is stored, and each later event that changes a grant of the actor changes it, in the order of the log.
 * An actor may have grants of thousands of masters, so an event and `fault` cost the same however many there are.
 */
export class ReaderAccess {
  readonly actorId: string;
  /** When it is to be compared with what is stored (monotonic, ms). */
  checkMs = Number.POSITIVE_INFINITY;
  /** How long after a comparison that failed the next one comes, ms: longer each time. */
  retryMs = firstStoredCheckMs;
  readonly #ledgerId: string;
  readonly #masterId: string | null;
  readonly #baseSeq: number;
  readonly #basis: Basis;
  /** The grants that matter for the basis: of single masters by master, others by keyOf. */
  readonly #known = new Map<string, KnownGrant>();
  #faultFromMs = Number.POSITIVE_INFINITY;
  /** Whether `#faultFromMs` is when the access ends, and not a time before that. */
  #isExact = true;
  /** null: the grants are not counted. */
  #memory: GrantsMemory | null = null;
  /** What is counted. */
  heldBytes = 0;
  #isOverloaded = false;

  /**
   * `baseSeq`: a seq that was durable before `held` was read, so that changes up to it are known. `masterId`: the
   * master that is followed; null for a ledger.
   */
  constructor(
    facts: LedgerFacts,
    actorId: string,
    masterId: string | null,
    held: readonly HeldGrant[],
    baseSeq: number,
    nowMs: number,
  ) {
    this.actorId = actorId;
    this.#ledgerId = facts.ledgerId;
    this.#masterId = masterId;
    this.#baseSeq = baseSeq;
    if (isParty(facts, actorId)) {
      this.#basis = 'party';
      return;
    }
    const whole = readRule(facts, masterId).objects.map(keyOf);
    const readsWhole = held.some((grant) => whole.includes(keyOf(grant)) && nowMs < endOf(grant.grant));
    this.#basis = masterId !== null || readsWhole ? 'whole' : 'masters';
    if (this.#basis === 'whole') for (const key of whole) this.#known.set(key, { ...neverGiven, isUsed: true });
    for (const { scope, id, version, grant } of held) {
      const key = this.#keyOf({ scope, id });
      const endsMs = endOf(grant);
      if (key !== null) this.#known.set(key, { version, endsMs, isUsed: this.#basis === 'whole' || nowMs < endsMs });
    }
    this.#findEnd();
  }

  /** Whether the reader may read all that is followed. Checkpoints are for such readers, as in `proofService`. */
  get isWhole(): boolean {
    return this.#basis !== 'masters';
  }

  /** Whether an event may end the access. */
  get mayEnd(): boolean {
    return this.#basis !== 'party';
  }

  /** The scopes of the events that are followed and may be read. null: all events of the ledger. */
  get scopes(): readonly string[] | null {
    if (this.#masterId !== null) return [names.masterEvents(this.#masterId)];
    if (this.isWhole) return null;
    const masterIds = [...this.#known.keys()].filter((masterId) => this.#known.get(masterId)?.isUsed);
    return partialReaderScopes(this.#ledgerId, masterIds);
  }

  /** Whether the event is one of those that are followed and may be read. */
  covers({ master }: Pick<LedgerEvent, 'master'>): boolean {
    if (this.#masterId !== null) return master?.id === this.#masterId;
    return this.#basis !== 'masters' || master === null || this.#known.get(master.id)?.isUsed === true;
  }

  /** Counts the grants, with those that come later. false: there is no room for them. */
  holdIn(memory: GrantsMemory): boolean {
    const bytes = this.#known.size * grantBytes;
    if (!memory.hold(this, bytes)) return false;
    this.#memory = memory;
    this.heldBytes = bytes;
    return true;
  }

  /** Releases what `holdIn` and later grants hold. */
  release(): void {
    this.#memory?.release(this);
    this.#memory = null;
    this.heldBytes = 0;
  }

  endAsOverloaded(): void {
    this.#isOverloaded = true;
  }

  /** Learns a change of a grant of the actor from the event at `seq`. An older change than is known has no effect. */
  learn({ scope, objectId, grant }: ActorGrantChange, seq: number): void {
    if (seq > this.#baseSeq) this.#learn({ scope, id: objectId, version: seq, grant });
  }

  /**
   * Learns from the store what the log does not bring: changes up to the base, and ends. A later grant comes with the
   * log, behind the end of an earlier one that the store no longer shows.
   */
  learnStored(held: readonly HeldGrant[]): void {
    for (const grant of held) if (grant.version <= this.#baseSeq || grant.grant === null) this.#learn(grant);
  }

  /** Whether none of the grants is newer than what is known of it. */
  knows(held: readonly HeldGrant[]): boolean {
    return held.every(({ scope, id, version }) => {
      const key = this.#keyOf({ scope, id });
      return key === null || version <= (this.#known.get(key)?.version ?? neverGiven.version);
    });
  }

  #learn({ scope, id, version, grant }: HeldGrant): void {
    const key = this.#keyOf({ scope, id });
    if (key === null) return;
    const known = this.#known.get(key) ?? this.#add(key);
    if (known === null || version <= known.version) return;
    const before = known.isUsed ? known.endsMs : null;
    known.version = version;
    known.endsMs = endOf(grant);
    known.isUsed ||= grant !== null;
    if (this.#basis === 'whole') this.#findEnd();
    else if (known.isUsed && known.endsMs <= this.#faultFromMs) {
      this.#faultFromMs = known.endsMs;
      this.#isExact = true;
    } else if (before === this.#faultFromMs) this.#isExact = false;
  }

  /** null: there is no memory for it. */
  #add(key: string): KnownGrant | null {
    if (this.#memory !== null) {
      if (!this.#memory.grow(this, grantBytes)) {
        this.endAsOverloaded();
        return null;
      }
      this.heldBytes += grantBytes;
    }
    const known = { ...neverGiven };
    this.#known.set(key, known);
    return known;
  }

  /** Why the follower may not read on; null if it may. */
  fault(nowMs: number): LedgerError | null {
    if (this.#isOverloaded) return tooManyGrants();
    if (nowMs >= this.#faultFromMs && !this.#isExact) this.#findEnd();
    if (nowMs < this.#faultFromMs) return null;
    return this.#faultFromMs === ended ? revoked() : expired();
  }

  /** From when on `fault` has to be asked, ms since 1970: before that there is none, unless an event makes one. */
  get faultFromMs(): number {
    return this.#isOverloaded ? ended : this.#faultFromMs;
  }

  /** An access to all that is followed ends with the last of its grants, one to single masters with the first. */
  #findEnd(): void {
    let first = Number.POSITIVE_INFINITY;
    let last = ended;
    let isUsed = false;
    for (const known of this.#known.values()) {
      if (!known.isUsed) continue;
      isUsed = true;
      first = Math.min(first, known.endsMs);
      last = Math.max(last, known.endsMs);
    }
    this.#faultFromMs = isUsed && this.#basis === 'masters' ? first : last;
    // Without any grant the access has ended, until one comes.
    this.#isExact = isUsed;
  }

  /** null: the access does not depend on a grant of the object. */
  #keyOf(object: GrantObject): string | null {
    if (this.#basis === 'masters') return object.scope === 'master' ? object.id : null;
    const key = keyOf(object);
    return this.#known.has(key) ? key : null;
  }
}

const neverGiven: KnownGrant = { version: -1, endsMs: ended, isUsed: false };

function keyOf({ scope, id }: GrantObject): string {
  return `${scope}:${id}`;
}

function endOf(grant: GrantTerms | null): number {
  if (grant === null) return ended;
  return grant.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(grant.expiresAt);
}

export function tooManyGrants(): LedgerError {
  return new LedgerError(
    'overloaded',
    'Grants of delegates that follow ledgers hold as much memory of this node as they may: ' +
      'resume behind the last message, after retry_after_ms.',
    { bound: 'MEMORY_BUDGET_MIB' },
  );
}

function expired(): LedgerError {
  return new LedgerError(
    'access_expired',
    'The grant that this stream rests on has run out; ask a party of the ledger for a new one.',
  );
}

function revoked(): LedgerError {
  return new LedgerError(
    'permission_denied',
    'The grant that this stream rests on was revoked; a new stream shows what you may still read.',
  );
}
