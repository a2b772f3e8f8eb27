import { type LedgerFacts, ledgerFacts } from '../../domain/event/facts.ts';
import { invalidAnswer } from '../error.ts';
import { type Event, ledgerEvent, readEvent } from '../event.ts';

interface MasterNames {
  readonly masterId: string;
  readonly ledgerId: string;
  readonly businessRef: string;
  readonly scope: string;
}

/** Reads facts that are not cached. */
interface FactSource {
  /** The ledger's GENESIS, which every reader of the ledger may read. undefined if the service shows none. */
  genesis(ledgerId: string): Promise<Event | undefined>;
  master(masterId: string): Promise<MasterNames>;
  organizationLedger(organizationId: string): Promise<string>;
  rootLedger(actorId: string): Promise<string>;
  /** The id of the actor that the client's credential belongs to. */
  caller(): Promise<string>;
}

/**
 * What signing needs to know. It never changes, so it is cached. Methods reject with what reading it throws, and with
 * `invalid_answer` if the answer is about something else than was asked for: a signature would then be good for an
 * event that the caller never named.
 */
export interface Facts extends Omit<FactSource, 'genesis'> {
  ledger(ledgerId: string): Promise<LedgerFacts>;
  /** Throws `invalid_answer` if the master was made with other names than were asked for. */
  noteMaster(asked: Omit<MasterNames, 'masterId'>, made: MasterNames): void;
}

/** Cached objects of each kind. The least recently used one is evicted. */
const KNOWN_MAX = 10_000;

export function createFacts(source: FactSource): Facts {
  const master = cached(async (id) => {
    const found = await source.master(id);
    if (found.masterId !== id) throw invalidAnswer('uuid', `that of the master asked for, ${id}`);
    return found;
  });
  const caller = cached(source.caller);
  const ledger = cached(async (id) => {
    const genesis = await source.genesis(id);
    if (genesis?.eventType !== 'GENESIS' || genesis.ledgerId !== id)
      throw invalidAnswer(`The start of ledger ${id}`, 'a GENESIS event');
    return ledgerFacts(ledgerEvent(readEvent(genesis)));
  });
  return {
    ledger,
    master: (id) => master(id),
    organizationLedger: cached(source.organizationLedger),
    rootLedger: cached(async (actorId) => {
      const id = await source.rootLedger(actorId);
      const { type, primaryActorId } = await ledger(id);
      if (type !== 'ENTITY_ROOT' || primaryActorId !== actorId)
        throw invalidAnswer('ledger_id', `that of the root of actor ${actorId}`);
      return id;
    }),
    caller: () => caller(''),
    noteMaster(asked, made) {
      for (const name of ['ledgerId', 'businessRef', 'scope'] as const)
        if (made[name] !== asked[name]) throw invalidAnswer(name, `that of the master to be made, ${asked[name]}`);
      void master(made.masterId, async () => made);
    },
  };
}

/** Concurrent callers share one read. A failed read is not cached. */
function cached<T>(read: (id: string) => Promise<T>) {
  const known = new Map<string, Promise<T>>();
  return (id: string, readOnce = read): Promise<T> => {
    let found = known.get(id);
    if (found === undefined) {
      found = readOnce(id);
      found.catch(() => known.delete(id));
      const oldest = known.size >= KNOWN_MAX ? known.keys().next().value : undefined;
      if (oldest !== undefined) known.delete(oldest);
    } else known.delete(id);
    known.set(id, found);
    return found;
  };
}
