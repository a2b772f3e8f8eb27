import { LedgerError, notFound } from '../../domain/errors.ts';
import type { LedgerType } from '../../domain/event.ts';
import type { GrantScope } from '../../domain/grant.ts';
import { isParty, type LedgerFacts } from '../../domain/ledger-facts.ts';
import type { MasterFacts } from '../../domain/master-facts.ts';
import { demand, grantStanding, type Standing, strongerStanding } from '../../domain/permission.ts';
import { type GrantCell, type LedgerLine, type MasterLine, names } from '../../domain/projection.ts';
import { isoTime } from '../../domain/time.ts';
import { parseStored } from '../../store/damaged-record.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { linePages } from '../../store/line-pages.ts';

/** Facts of ledgers and masters never change, so they are kept; half a KB each. */
const factsCachedMax = 50_000;

/** Masters of one ledger that are looked through for one delegate: of more that it ever had grants of, the newest. */
const masterLinksMax = 10_000;
/** Looked through at once: a millisecond of the main thread, where the store answers from memory. */
const masterLinksChunk = 100;

/** A ledger as a caller may see it. */
export interface SeenLedger {
  readonly facts: LedgerFacts;
  readonly standing: Standing;
  /** The masters that are all the caller sees of the ledger, beside its own events; null: everything. */
  readonly masters: readonly string[] | null;
}

export interface SeenMaster {
  readonly facts: MasterFacts;
  readonly ledger: LedgerFacts;
  readonly standing: Standing;
}

/**
 * What ledgers and masters are and who may see them, read from the projections beside the log: any node can answer it.
 * Who may write is decided by the ledger's own actor.
 */
export class LedgerReading {
  readonly #store: LedgerStore;
  readonly #now: () => number;
  readonly #ledgers = new Map<string, LedgerFacts>();
  readonly #masters = new Map<string, MasterFacts>();

  constructor(store: LedgerStore, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  async ledgerFacts(ledgerId: string): Promise<LedgerFacts | null> {
    return this.#facts(this.#ledgers, names.ledger(ledgerId), ledgerId);
  }

  async masterFacts(masterId: string): Promise<MasterFacts | null> {
    return this.#facts(this.#masters, names.master(masterId), masterId);
  }

  /** The facts of a master that was seen before. */
  knownMaster(masterId: string): MasterFacts | null {
    return this.#masters.get(masterId) ?? null;
  }

  async ledgerStatus(ledgerId: string): Promise<'OPEN' | 'CLOSED'> {
    return (await this.#store.cell(names.ledgerClosed(ledgerId))) === null ? 'OPEN' : 'CLOSED';
  }

  /** A master of a closed ledger reads as CLOSED too. */
  async masterStatus(master: MasterFacts): Promise<'OPEN' | 'CLOSED'> {
    if ((await this.#store.cell(names.masterClosed(master.masterId))) !== null) return 'CLOSED';
    return this.ledgerStatus(master.ledgerId);
  }

  /** The ledger, for someone who reads all of it. Throws `not_found`, or `access_expired`. `type` narrows to one type. */
  async readable(ledgerId: string, actorId: string, type?: LedgerType): Promise<SeenLedger> {
    const seen = await this.seen(ledgerId, actorId, type);
    if (seen.masters === null) return seen;
    throw new LedgerError(
      'permission_denied',
      'Your grant is for masters of this ledger: this call needs access to the whole ledger.',
    );
  }

  /**
   * The ledger, for someone who reads at least some of its masters. Throws `not_found`, or `access_expired`.
   */
  async seen(ledgerId: string, actorId: string, type?: LedgerType): Promise<SeenLedger> {
    const facts = await this.ledgerFacts(ledgerId);
    if (facts === null || (type !== undefined && facts.type !== type)) throw notFound('ledger');
    const standing = await this.standing(facts, actorId);
    if (isReading(standing)) return { facts, standing, masters: null };
    const links = await this.#masterLinks(ledgerId, actorId);
    demand(links.masters.length > 0 ? 'read' : strongerStanding(standing, links.standing), 'read', 'ledger');
    return { facts, standing: links.standing, masters: links.masters };
  }

  /** Whether `seen` answers: told by the first master that the actor reads, where others are read too. */
  async seesSome(ledgerId: string, actorId: string): Promise<boolean> {
    const facts = await this.ledgerFacts(ledgerId);
    if (facts === null) return false;
    if (isReading(await this.standing(facts, actorId))) return true;
    for await (const { standing } of this.#mastersGranted(ledgerId, actorId)) if (isReading(standing)) return true;
    return false;
  }

  /** The masters of a ledger that an actor reads by grants of their own, in the order of their creation. */
  async #masterLinks(ledgerId: string, actorId: string): Promise<{ masters: readonly string[]; standing: Standing }> {
    const masters: string[] = [];
    let standing: Standing = 'none';
    for await (const granted of this.#mastersGranted(ledgerId, actorId)) {
      standing = strongerStanding(standing, granted.standing);
      if (isReading(granted.standing)) masters.push(granted.masterId);
    }
    return { masters: masters.reverse(), standing };
  }

  async *#mastersGranted(
    ledgerId: string,
    actorId: string,
  ): AsyncIterable<{ readonly masterId: string; readonly standing: Standing }> {
    for await (const masterId of mastersEverGranted(this.#store, ledgerId, actorId, masterLinksChunk))
      yield { masterId, standing: await this.#byGrant('master', masterId, actorId) };
  }

  /** The master, for someone who reads its events; at once for a party, of what is in memory. Throws `not_found`, or `access_expired`. */
  readableMaster(masterId: string, actorId: string): SeenMaster | Promise<SeenMaster> {
    const facts = this.#masters.get(masterId);
    const ledger = facts === undefined ? undefined : this.#ledgers.get(facts.ledgerId);
    return facts !== undefined && ledger !== undefined && isParty(ledger, actorId)
      ? { facts, ledger, standing: 'party' }
      : this.#findReadableMaster(masterId, actorId);
  }

  async #findReadableMaster(masterId: string, actorId: string): Promise<SeenMaster> {
    const facts = await this.masterFacts(masterId);
    const ledger = facts === null ? null : await this.ledgerFacts(facts.ledgerId);
    if (facts === null || ledger === null) throw notFound('master');
    let standing = await this.standing(ledger, actorId);
    if (!isReading(standing)) {
      standing = strongerStanding(standing, await this.#byGrant('master', masterId, actorId));
    }
    demand(standing, 'read', 'master');
    return { facts, ledger, standing };
  }

  /** Standing on the whole ledger. */
  async standing(facts: LedgerFacts, actorId: string): Promise<Standing> {
    if (isParty(facts, actorId)) return 'party';
    const onLedger = await this.#byGrant('ledger', facts.ledgerId, actorId);
    if (facts.organizationId === null || onLedger === 'owner') return onLedger;
    return strongerStanding(onLedger, await this.#byGrant('organization', facts.organizationId, actorId));
  }

  /** Standing on the organization of an FRL. */
  async organizationStanding(facts: LedgerFacts, actorId: string): Promise<Standing> {
    if (isParty(facts, actorId)) return 'party';
    return facts.organizationId === null ? 'none' : this.#byGrant('organization', facts.organizationId, actorId);
  }

  /** Whether the grant that a line of a delegate's ledgers came from still holds. */
  async holdsGrant(line: LedgerLine, actorId: string): Promise<boolean> {
    if (line.scope === undefined || line.objectId === undefined) return false;
    return isReading(await this.#byGrant(line.scope, line.objectId, actorId));
  }

  async #byGrant(scope: GrantScope, objectId: string, actorId: string): Promise<Standing> {
    const key = names.grant(scope, objectId, actorId);
    const cell = await this.#store.cell(key);
    if (cell === null) return 'none';
    const { grant } = parseStored('cell', key, cell.value) as GrantCell;
    return grantStanding(scope, grant, isoTime(this.#now()));
  }

  async #facts<T>(cache: Map<string, T>, key: string, id: string): Promise<T | null> {
    const known = cache.get(id);
    if (known !== undefined) return known;
    const cell = await this.#store.cell(key);
    if (cell === null) return null;
    const facts = parseStored('cell', key, cell.value) as T;
    if (cache.size >= factsCachedMax) cache.clear();
    cache.set(id, facts);
    return facts;
  }
}

/**
 * The masters of a ledger that an actor ever had a grant of, the newest first: as many as reads look at, `atOnce` from the store, and
 * everything else that is ready has its turn before the next of them.
 */
export async function* mastersEverGranted(
  store: Pick<LedgerStore, 'lines'>,
  ledgerId: string,
  actorId: string,
  atOnce: number,
): AsyncIterable<string> {
  let count = 0;
  const list = names.masterLinksOf(ledgerId, actorId);
  for await (const lines of linePages(store, list, atOnce, true)) {
    for (const { value } of lines) yield (parseStored('line', list, value) as MasterLine).masterId;
    count += atOnce;
    if (lines.length < atOnce || count >= masterLinksMax) return;
    await new Promise((resolve) => void setImmediate(resolve));
  }
}

function isReading(standing: Standing): boolean {
  return standing !== 'none' && standing !== 'expired';
}
