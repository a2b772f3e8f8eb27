import { LedgerError, notFound } from '../../domain/errors.ts';
import type { LedgerType } from '../../domain/event/event.ts';
import { isParty, type LedgerFacts, ledgerFacts, type MasterFacts } from '../../domain/event/facts.ts';
import { type GrantTerms, grantTerms } from '../../domain/event/grant.ts';
import { wrongHash } from '../../domain/event/integrity.ts';
import { type LedgerLine, names } from '../../domain/event/projection.ts';
import {
  type AccessLevel,
  demandAccess,
  type GrantObject,
  grantAccessLevel,
  mayRead,
  readRule,
  strongerAccess,
} from '../../domain/ledger/permission.ts';
import { isoTime } from '../../domain/values/time.ts';
import { WeightedMap } from '../../runtime/collections/weighted-map.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { pageCharsMax } from '../../store/pages.ts';
import { decodeOrPassOver, decodeStored, storedCell } from '../../store/unreadable-record.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import type { Walk } from '../walking/walk.ts';
import { type LinkStore, MasterSearch, masterLinksMax, mastersEverGranted } from './master-search.ts';
import { readEvent } from './stored-event.ts';
import { parseGrantCell, parseLedgerFacts, parseMasterFacts } from './stored-lines.ts';

/**
 * Cached facts of ledgers, and as many bytes of masters: some 60,000 of each. They never change. A business_ref may be
 * longer than all else.
 */
const factsCachedBytes = 32 * 1024 * 1024;
/** What facts take beside their texts. */
const factsBytes = 256;

/** Masters looked up at once: a millisecond of the main thread if the store answers from memory. */
const masterLinksChunk = 100;

/** A ledger as one caller may see it. */
interface VisibleLedger {
  readonly facts: LedgerFacts;
  /**
   * The masters that the caller may read beside the ledger's own events, in the order of their creation. null if the
   * caller may read everything.
   */
  readonly masters: readonly string[] | null;
}

/** What an actor holds of one object, as stored. */
export interface HeldGrant extends GrantObject {
  /** Seq of the event that changed it last; -1 if none did. */
  readonly version: number;
  readonly grant: GrantTerms | null;
}

/** The seqs of the events that closed a ledger and one of its masters. */
interface ClosedAt {
  readonly ledgerSeq: number | null;
  readonly masterSeq: number | null;
}

/** A master that the caller may read, and its ledger. */
interface ReadableMaster {
  readonly facts: MasterFacts;
  readonly ledger: LedgerFacts;
}

/** Facts of ledgers and masters, and the read access of actors. Read from the projections, so any node can answer. */
export class LedgerReading {
  readonly #store: LedgerStore;
  readonly #now: () => number;
  readonly #ledgers = new WeightedMap<string, LedgerFacts>(factsCachedBytes);
  readonly #masters = new WeightedMap<string, MasterFacts>(factsCachedBytes);
  readonly #masterSearch: MasterSearch;

  constructor(store: LedgerStore, now: () => number) {
    this.#store = store;
    this.#now = now;
    const mayReadMaster = async (masterId: string, actorId: string, cells?: LinkStore) =>
      mayRead(await this.#byGrant({ scope: 'master', id: masterId }, actorId, cells));
    this.#masterSearch = new MasterSearch({ store, now, mayRead: mayReadMaster });
  }

  async ledgerFacts(ledgerId: string): Promise<LedgerFacts | null> {
    const known = this.#ledgers.get(ledgerId);
    if (known !== undefined) return known;
    const key = names.ledger(ledgerId);
    const cell = await this.#store.cell(key);
    if (cell === null) return null;
    const facts =
      decodeOrPassOver(storedCell(key, cell.value), parseLedgerFacts) ??
      (await this.#factsInLog(ledgerId)) ??
      decodeStored(storedCell(key, cell.value), parseLedgerFacts);
    this.#ledgers.set(ledgerId, facts, factsBytes + textBytes(cell.value));
    return facts;
  }

  async masterFacts(masterId: string): Promise<MasterFacts | null> {
    const known = this.#masters.get(masterId);
    if (known !== undefined) return known;
    const key = names.master(masterId);
    const cell = await this.#store.cell(key);
    if (cell === null) return null;
    const facts = decodeStored(storedCell(key, cell.value), parseMasterFacts);
    this.#masters.set(masterId, facts, factsBytes + textBytes(cell.value));
    return facts;
  }

  /** The facts of a master if they are cached, else null. */
  knownMaster(masterId: string): MasterFacts | null {
    return this.#masters.get(masterId) ?? null;
  }

  /** The cell of a closing need not be readable: a ledger that has one is closed. */
  async ledgerStatus(ledgerId: string): Promise<'OPEN' | 'CLOSED'> {
    return (await this.#store.cell(names.ledgerClosed(ledgerId))) === null ? 'OPEN' : 'CLOSED';
  }

  /** Returns CLOSED for every master of a closed ledger. */
  async masterStatus(master: MasterFacts): Promise<'OPEN' | 'CLOSED'> {
    if ((await this.#store.cell(names.masterClosed(master.masterId))) !== null) return 'CLOSED';
    return this.ledgerStatus(master.ledgerId);
  }

  /**
   * The ledger, if the actor may read all of it. Throws `not_found`, `permission_denied` (access to some masters only)
   * or `access_expired`. A ledger of another type than `type` is not found.
   */
  async wholeLedger(walk: Walk, ledgerId: string, actorId: string, type?: LedgerType): Promise<VisibleLedger> {
    const ledger = await this.visibleLedger(walk, ledgerId, actorId, type);
    if (ledger.masters === null) return ledger;
    throw new LedgerError(
      'permission_denied',
      'Your grant is for masters of this ledger: this call needs access to the whole ledger.',
    );
  }

  /** The ledger, if the actor may read it or one of its masters. Throws `not_found` or `access_expired`. */
  async visibleLedger(walk: Walk, ledgerId: string, actorId: string, type?: LedgerType): Promise<VisibleLedger> {
    const facts = await this.ledgerFacts(ledgerId);
    if (facts === null || (type !== undefined && facts.type !== type)) throw notFound('ledger');
    const level = await this.ledgerAccess(facts, actorId);
    if (mayRead(level)) return { facts, masters: null };
    const masters: string[] = [];
    let strongest = level;
    for await (const granted of this.#mastersGranted(boundedLedgers(walk, this.#store), ledgerId, actorId)) {
      strongest = strongerAccess(strongest, granted.level);
      if (mayRead(granted.level)) masters.push(granted.masterId);
    }
    demandAccess(strongest, 'read', 'ledger');
    return { facts, masters: masters.reverse() };
  }

  /**
   * The read rule for one event, now. `masterId` null: an event of the ledger itself, for which the actor's masters may
   * have to be searched in `masters`.
   */
  async mayReadEvent(actorId: string, ledgerId: string, masterId: string | null, masters: LinkStore): Promise<boolean> {
    const facts = await this.ledgerFacts(ledgerId);
    if (facts === null) return false;
    const { objects, anyMaster } = readRule(facts, masterId);
    if (mayRead(await this.#access(facts, objects, actorId))) return true;
    return anyMaster && this.#masterSearch.mayRead(actorId, ledgerId, masters);
  }

  /** The masters that the actor ever had a grant of, newest first, with its access now. */
  async *#mastersGranted(
    store: LinkStore,
    ledgerId: string,
    actorId: string,
  ): AsyncIterable<{ readonly masterId: string; readonly level: AccessLevel }> {
    for await (const { masterId } of mastersEverGranted(store, ledgerId, actorId, masterLinksChunk))
      yield { masterId, level: await this.#byGrant({ scope: 'master', id: masterId }, actorId, store) };
  }

  /** The master, if the actor may read it. Throws `not_found` or `access_expired`. Synchronous if all is cached. */
  readableMaster(masterId: string, actorId: string): ReadableMaster | Promise<ReadableMaster> {
    const facts = this.#masters.get(masterId);
    const ledger = facts === undefined ? undefined : this.#ledgers.get(facts.ledgerId);
    return facts !== undefined && ledger !== undefined && isParty(ledger, actorId)
      ? { facts, ledger }
      : this.#findReadableMaster(masterId, actorId);
  }

  async #findReadableMaster(masterId: string, actorId: string): Promise<ReadableMaster> {
    const facts = await this.masterFacts(masterId);
    const ledger = facts === null ? null : await this.ledgerFacts(facts.ledgerId);
    if (facts === null || ledger === null) throw notFound('master');
    demandAccess(await this.#access(ledger, readRule(ledger, masterId).objects, actorId), 'read', 'master');
    return { facts, ledger };
  }

  /** The actor's access to the whole ledger, at least as far as reading needs it. */
  ledgerAccess(facts: LedgerFacts, actorId: string): Promise<AccessLevel> {
    return this.#access(facts, readRule(facts, null).objects, actorId);
  }

  /**
   * What an actor that is no party holds of the objects that give access to a ledger, or to one of its masters. For a
   * ledger (`masterId` null) these include all masters that the actor ever had a grant of.
   */
  async heldGrants(walk: Walk, facts: LedgerFacts, actorId: string, masterId: string | null): Promise<HeldGrant[]> {
    const store = boundedLedgers(walk, this.#store);
    const { objects, anyMaster } = readRule(facts, masterId);
    const asked = [...objects];
    if (anyMaster)
      for await (const { masterId: id } of mastersEverGranted(store, facts.ledgerId, actorId, masterLinksChunk))
        asked.push({ scope: 'master', id });
    const held: HeldGrant[] = [];
    for (const { scope, id } of asked) {
      const key = names.grant(scope, id, actorId);
      const cell = await store.cell(key);
      const found = cell === null ? undefined : decodeOrPassOver(storedCell(key, cell.value), parseGrantCell);
      const grant = found?.grant == null ? null : grantTerms(found.grant);
      held.push({ scope, id, version: cell?.version ?? -1, grant });
    }
    return held;
  }

  async closedAt(ledgerId: string, masterId: string | null): Promise<ClosedAt> {
    const [ledger, master] = await Promise.all([
      this.#store.cell(names.ledgerClosed(ledgerId)),
      masterId === null ? null : this.#store.cell(names.masterClosed(masterId)),
    ]);
    return { ledgerSeq: ledger?.version ?? null, masterSeq: master?.version ?? null };
  }

  /** The root ledger of an organization, for its owner and delegates. Throws `not_found` or `access_expired`. */
  async readableOrganization(rootLedgerId: string, actorId: string): Promise<LedgerFacts> {
    const facts = await this.ledgerFacts(rootLedgerId);
    if (facts === null) throw notFound('organization');
    const organization = readRule(facts, null).objects.filter(({ scope }) => scope === 'organization');
    const level = await this.#access(facts, organization, actorId);
    if (level === 'none') throw notFound('organization');
    if (mayRead(level)) return facts;
    throw new LedgerError(
      'access_expired',
      'Your access to this organization has run out; ask its owner for a new grant.',
    );
  }

  /**
   * Returns a check for the lines of a delegate's list of ledgers: whether the grant of a line is active and lets the
   * delegate see the ledger, as `visibleLedger` decides it.
   */
  grantCheck(walk: Walk, actorId: string): (line: LedgerLine) => Promise<boolean> {
    const oldestCounted = new Map<string, Promise<string>>();
    return async ({ ledgerId, scope, objectId }) => {
      if (scope === undefined || objectId === undefined) return false;
      if (!mayRead(await this.#byGrant({ scope, id: objectId }, actorId))) return false;
      if (scope !== 'master') return true;
      const oldest = oldestCounted.get(ledgerId) ?? this.#oldestCounted(walk, ledgerId, actorId);
      oldestCounted.set(ledgerId, oldest);
      return objectId >= (await oldest);
    };
  }

  /** The oldest master that `visibleLedger` reads for a delegate. Ids of masters rise. '' if it reads all of them. */
  async #oldestCounted(walk: Walk, ledgerId: string, actorId: string): Promise<string> {
    const list = names.masterLinksOf(ledgerId, actorId);
    const place = { descending: true, offset: masterLinksMax - 1, limit: 1, charsMax: pageCharsMax };
    const [line] = await boundedLedgers(walk, this.#store).lines(list, place);
    return line?.order ?? '';
  }

  /** The actor's access as a party of the ledger or by grants of the objects, up to the first that allows reading. */
  async #access(facts: LedgerFacts, objects: readonly GrantObject[], actorId: string): Promise<AccessLevel> {
    if (isParty(facts, actorId)) return 'party';
    let level: AccessLevel = 'none';
    for (const object of objects) {
      level = strongerAccess(level, await this.#byGrant(object, actorId));
      if (mayRead(level)) break;
    }
    return level;
  }

  async #byGrant(
    { scope, id }: GrantObject,
    actorId: string,
    store: Pick<LinkStore, 'cell'> = this.#store,
  ): Promise<AccessLevel> {
    const key = names.grant(scope, id, actorId);
    const cell = await store.cell(key);
    if (cell === null) return 'none';
    // A damaged grant gives no access.
    const held = decodeOrPassOver(storedCell(key, cell.value), parseGrantCell);
    return held === undefined ? 'none' : grantAccessLevel(scope, held.grant, isoTime(this.#now()));
  }

  /** The facts of a ledger whose cell is damaged, from its first event. null if that event is damaged too. */
  async #factsInLog(ledgerId: string): Promise<LedgerFacts | null> {
    const [entry] = await this.#store.read(ledgerId, 0, 1);
    if (entry?.seq !== 0) return null;
    const genesis = readEvent(entry, { ledgerId, scopes: null }, []);
    return genesis === null || wrongHash(genesis) !== null ? null : ledgerFacts(genesis);
  }
}

/** V8 takes two bytes for each character of a text that is not all Latin-1. */
function textBytes(text: string): number {
  return Buffer.byteLength(text) === text.length ? text.length : 2 * text.length;
}
