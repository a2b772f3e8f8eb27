import type { NodeUnderTest } from '../rig/node-under-test.ts';
import { type LoadParty, registerParty } from './parties.ts';

export interface LoadMaster {
  readonly id: string;
  /** The fields that the service adds to every payload. */
  readonly injected: Readonly<Record<string, string>>;
}

export interface LoadLedger {
  readonly id: string;
  /** The first `closedKept` may be closed already. */
  masters: readonly LoadMaster[];
}

export interface LoadWorld {
  readonly supplier: LoadParty;
  readonly buyer: LoadParty;
  /** They may write while they have a grant. */
  readonly delegates: readonly LoadParty[];
  readonly ledgers: readonly LoadLedger[];
  close(): Promise<void>;
}

export const businessRef = 'PO-1';
export const masterScope = 'ORDER';
const mastersPerLedger = 3;
/** The number of closed masters of a ledger that are still written to. */
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
