import { type LedgerFacts, ledgerFacts } from '../domain/ledger-facts.ts';
import { invalidAnswer } from './error.ts';
import { type Event, genesisEvent } from './event.ts';

/** What the signed form of an event needs of its master. Fixed for good. */
export interface MasterNames {
  readonly masterId: string;
  readonly ledgerId: string;
  readonly businessRef: string;
  readonly scope: string;
}

/** How the facts are read where they are not known yet. */
export interface FactSource {
  /** The ledger's GENESIS, which every reader of the ledger may read, by header identity too. */
  genesis(ledgerId: string): Promise<Event | undefined>;
  master(masterId: string): Promise<MasterNames>;
  /** The ledger of an organization's own root. */
  organizationLedger(organizationId: string): Promise<string>;
  /** The actor that the client's credential belongs to. */
  caller(): Promise<string>;
}

/** What signing needs to know of ledgers, masters and organizations. None of it ever changes, so it is read once. */
export interface Facts {
  ledger(ledgerId: string): Promise<LedgerFacts>;
  master(masterId: string): Promise<MasterNames>;
  organizationLedger(organizationId: string): Promise<string>;
  caller(): Promise<string>;
  /** Takes in the facts of a master that was just made. */
  noteMaster(master: MasterNames): void;
}

/** Objects remembered of each kind; the ones not asked for longest are forgotten and read again. */
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

/** One read for all who ask at once; a failed one is asked again. */
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
