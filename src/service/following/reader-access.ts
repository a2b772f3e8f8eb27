import { LedgerError } from '../../domain/errors.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { isParty, type LedgerFacts } from '../../domain/event/facts.ts';
import { type ActorGrantChange, names } from '../../domain/event/projection.ts';
import {
  type AccessLevel,
  grantAccessLevel,
  mayRead,
  partialReaderScopes,
  readRule,
  strongerAccess,
} from '../../domain/ledger/permission.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { HeldGrant } from '../reading/ledger-reading.ts';

/**
 * On what the access rests. 'party': on no grant, so it never ends. 'whole': on grants of all that is followed, a
 * ledger or one master. 'masters': on grants of single masters.
 */
type Basis = 'party' | 'whole' | 'masters';

const noGrants: ReadonlyMap<string, HeldGrant> = new Map();
const noMasters: ReadonlySet<string> = new Set();

/**
 * The access of one follower, kept from the log: all grants of a ledger are events of that ledger (ADR 13). It begins
 * with what is stored, and each later event that changes a grant of the actor changes it, in the order of the log.
 */
export class ReaderAccess {
  readonly actorId: string;
  readonly #ledgerId: string;
  readonly #masterId: string | null;
  readonly #baseSeq: number;
  #held: ReadonlyMap<string, HeldGrant> = noGrants;
  /** Keys of the objects of which one grant gives access to all that is followed. */
  readonly #whole: readonly string[];
  readonly #basis: Basis;
  /** Keys of the masters that a follower without access to the whole ledger may read. */
  #masters: ReadonlySet<string> = noMasters;
  #nextExpiryMs: number | null = null;

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
      this.#whole = [];
      return;
    }
    if (held.length > 0) this.#held = new Map(held.map((grant) => [keyOf(grant.scope, grant.id), grant]));
    this.#whole = readRule(facts, masterId).objects.map(({ scope, id }) => keyOf(scope, id));
    if (masterId !== null || mayRead(this.#strongest(this.#whole, nowMs))) this.#basis = 'whole';
    else {
      this.#basis = 'masters';
      const masters = held.filter(({ scope }) => scope === 'master').map(({ scope, id }) => keyOf(scope, id));
      this.#masters = new Set(masters.filter((key) => mayRead(this.#level(key, nowMs))));
    }
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
    const masterIds = [...this.#masters].map((key) => key.slice('master:'.length));
    return partialReaderScopes(this.#ledgerId, masterIds);
  }

  /** Whether the event is one of those that are followed and may be read. */
  covers({ master }: Pick<LedgerEvent, 'master'>): boolean {
    if (this.#masterId !== null) return master?.id === this.#masterId;
    return this.#basis !== 'masters' || master === null || this.#masters.has(keyOf('master', master.id));
  }

  /** Learns a change of a grant of the actor from the event at `seq`. An older change than is known has no effect. */
  learn({ scope, objectId, grant }: ActorGrantChange, seq: number): void {
    const key = keyOf(scope, objectId);
    if (seq <= Math.max(this.#baseSeq, this.#held.get(key)?.version ?? -1)) return;
    this.#learn({ scope, id: objectId, version: seq, grant });
  }

  learnStored(held: readonly HeldGrant[]): void {
    for (const grant of held)
      if (grant.version > (this.#held.get(keyOf(grant.scope, grant.id))?.version ?? -1)) this.#learn(grant);
  }

  #learn(held: HeldGrant): void {
    const key = keyOf(held.scope, held.id);
    this.#held = new Map(this.#held).set(key, held);
    this.#nextExpiryMs = null;
    if (this.#basis === 'masters' && held.scope === 'master' && held.grant !== null)
      this.#masters = new Set(this.#masters).add(key);
  }

  /** Why the follower may not read on; null if it may. */
  fault(nowMs: number): LedgerError | null {
    if (this.#basis === 'party') return null;
    if (this.#basis === 'whole') return faultOf(this.#strongest(this.#whole, nowMs));
    if (this.#masters.size === 0) return faultOf('none');
    for (const key of this.#masters) {
      const fault = faultOf(this.#level(key, nowMs));
      if (fault !== null) return fault;
    }
    return null;
  }

  /** When `fault` may change without an event, ms since 1970. */
  get nextExpiryMs(): number {
    this.#nextExpiryMs ??= this.#findNextExpiry();
    return this.#nextExpiryMs;
  }

  #findNextExpiry(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const key of this.#basis === 'masters' ? this.#masters : this.#whole) {
      const expiresAt = this.#held.get(key)?.grant?.expiresAt ?? null;
      if (this.mayEnd && expiresAt !== null) next = Math.min(next, Date.parse(expiresAt));
    }
    return next;
  }

  #strongest(keys: readonly string[], nowMs: number): AccessLevel {
    return keys.reduce<AccessLevel>((level, key) => strongerAccess(level, this.#level(key, nowMs)), 'none');
  }

  #level(key: string, nowMs: number): AccessLevel {
    const held = this.#held.get(key);
    return held === undefined ? 'none' : grantAccessLevel(held.scope, held.grant, isoTime(nowMs));
  }
}

function keyOf(scope: string, id: string): string {
  return `${scope}:${id}`;
}

function faultOf(level: AccessLevel): LedgerError | null {
  if (mayRead(level)) return null;
  if (level === 'expired')
    return new LedgerError(
      'access_expired',
      'The grant that this stream rests on has run out; ask a party of the ledger for a new one.',
    );
  return new LedgerError(
    'permission_denied',
    'The grant that this stream rests on was revoked; a new stream shows what you may still read.',
  );
}
