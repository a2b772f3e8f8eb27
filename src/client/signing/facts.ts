import { type LedgerFacts, ledgerFacts } from '../../domain/event/facts.ts';
import { invalidAnswer } from '../error.ts';
import { type Event, genesisEvent } from '../event.ts';

/** What the signed form of an event contains of its master. It never changes. */
interface MasterNames {
  readonly masterId: string;
  readonly ledgerId: string;
  readonly businessRef: string;
  readonly scope: string;
}

/** Reads facts that are not cached. */
interface FactSource {
  /**
   * The ledger's GENESIS. Every reader of the ledger may read it, by header identity too. undefined if the service
   * shows none.
   */
  genesis(ledgerId: string): Promise<Event | undefined>;
  master(masterId: string): Promise<MasterNames>;
  /** The id of an organization's root ledger. */
  organizationLedger(organizationId: string): Promise<string>;
  /** The id of the actor that the client's credential belongs to. */
  caller(): Promise<string>;
}

/**
 * What signing needs to know of ledgers, masters and organizations. None of it ever changes, so it is cached. Methods
 * reject with what the call throws that reads it; `ledger` also with `invalid_answer`.
 */
export interface Facts {
  ledger(ledgerId: string): Promise<LedgerFacts>;
  master(masterId: string): Promise<MasterNames>;
  organizationLedger(organizationId: string): Promise<string>;
  caller(): Promise<string>;
  /** Caches the facts of a master that was just created. */
  noteMaster(master: MasterNames): void;
}

/** Cached objects of each kind. The least recently used one is evicted, and read again when it is needed. */
const KNOWN_MAX = 10_000;

export function createFacts(source: FactSource): Facts {
  const ledgers = new Map<string, Promise<LedgerFacts>>();
  const masters = new Map<string, Promise<MasterNames>>();
  const organizations = new Map<string, Promise<string>>();
  const callers = new Map<string, Promise<string>>();
  return {
    ledger: (id) =>
      known(ledgers, id, async () => {
        const genesis = await source.genesis(id);
        if (genesis?.eventType !== 'GENESIS' || genesis.ledgerId !== id)
          throw invalidAnswer(`The start of ledger ${id}`, 'a GENESIS event');
        return ledgerFacts(genesisEvent(genesis));
      }),
    master: (id) => known(masters, id, () => source.master(id)),
    organizationLedger: (id) => known(organizations, id, () => source.organizationLedger(id)),
    caller: () => known(callers, 'me', () => source.caller()),
    noteMaster(master) {
      void known(masters, master.masterId, async () => master);
    },
  };
}

/** Concurrent callers share one read. A failed read is not cached. */
function known<T>(cache: Map<string, Promise<T>>, id: string, read: () => Promise<T>): Promise<T> {
  let found = cache.get(id);
  if (found === undefined) {
    found = read();
    found.catch(() => cache.delete(id));
    const oldest = cache.size >= KNOWN_MAX ? cache.keys().next().value : undefined;
    if (oldest !== undefined) cache.delete(oldest);
  } else cache.delete(id);
  cache.set(id, found);
  return found;
}
