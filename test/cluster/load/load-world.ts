import type { NodeUnderTest } from '../rig/node-under-test.ts';
import { type LoadParty, registerParty } from './parties.ts';

/** A master as its writers know it. */
export interface LoadMaster {
  readonly id: string;
  /** What the service adds to every payload of it. */
  readonly injected: Readonly<Record<string, string>>;
}

export interface LoadLedger {
  readonly id: string;
  /** Open ones, or closed a moment ago. */
  masters: readonly LoadMaster[];
}

/** Who writes, and into what. */
export interface LoadWorld {
  readonly supplier: LoadParty;
  readonly buyer: LoadParty;
  /** They write while a grant lets them. */
  readonly delegates: readonly LoadParty[];
  readonly ledgers: readonly LoadLedger[];
  close(): Promise<void>;
}

export const businessRef = 'PO-1';
export const masterScope = 'ORDER';
const mastersPerLedger = 3;
/** So many of a ledger's masters are closed, and still written to; they come first. */
export const closedKept = 1;

export async function makeLoadWorld(nodes: readonly NodeUnderTest[], ledgerCount: number): Promise<LoadWorld> {
  const [node] = nodes;
  if (node === undefined) throw new Error('no node');
  const [supplier, buyer, ...delegates] = await Promise.all(
    ['supplier', 'buyer', 'first delegate', 'second delegate'].map((name) => registerParty(node, name)),
  );
  if (supplier === undefined || buyer === undefined) throw new Error('no parties');
  const ledgers = await Promise.all(
    Array.from({ length: ledgerCount }, async (_, at) => {
      const made = await buyer.at(node).createLedger({ supplierSvcId: supplier.svcId });
      const here = nodes[at % nodes.length] ?? node;
      const masters = await Promise.all(
        Array.from({ length: mastersPerLedger }, async () => {
          const request = { ledgerId: made.id, businessRef, scope: masterScope };
          const { uuid } = await supplier.at(here).createMaster(request);
          return loadMaster(uuid, supplier.actorId, buyer.actorId);
        }),
      );
      return { id: made.id, masters };
    }),
  );
  const parties = [supplier, buyer, ...delegates];
  return {
    supplier,
    buyer,
    delegates,
    ledgers,
    close: async () => void (await Promise.all(parties.map((party) => party.close()))),
  };
}

export function loadMaster(id: string, supplierActorId: string, buyerActorId: string): LoadMaster {
  const injected = {
    traceledger_master_uuid: id,
    business_ref: businessRef,
    scope: masterScope,
    supplier_actor_id: supplierActorId,
    buyer_actor_id: buyerActorId,
  };
  return { id, injected };
}
