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
 * What signing needs to know. It never changes, so it is cached. Methods reject with what reading it throws; `ledger`
 * also with `invalid_answer`.
 */
export interface Facts extends Omit<FactSource, 'genesis'> {
  ledger(ledgerId: string): Promise<LedgerFacts>;
  noteMaster(master: MasterNames): void;
}

/** Cached objects of each kind. The least recently used one is evicted. */
const KNOWN_MAX = 10_000;

export function createFacts(source: FactSource): Facts {
  const master = cached(source.master);
  const caller = cached(source.caller);
  return {
    ledger: cached(async (id) => {
      const genesis = await source.genesis(id);
      if (genesis?.eventType !== 'GENESIS' || genesis.ledgerId !== id)
        throw invalidAnswer(`The start of ledger ${id}`, 'a GENESIS event');
      return ledgerFacts(ledgerEvent(readEvent(genesis)));
    }),
    master: (id) => master(id),
    organizationLedger: cached(source.organizationLedger),
    rootLedger: cached(source.rootLedger),
    caller: () => caller(''),
    noteMaster: (made) => void master(made.masterId, async () => made),
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
