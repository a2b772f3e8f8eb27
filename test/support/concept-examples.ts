import { newOrganization } from './organizations.ts';
import {
  append,
  entityRequest,
  newDevice,
  newKeyPair,
  newMaster,
  newOrder,
  newParty,
  type Party,
  signedBy,
} from './parties.ts';
import { done, type Fields } from './parties-rest.ts';

/** What a node answers in the situations that docs/concepts.md explains: by the name of the example there. */
export async function conceptExamples(base: string): Promise<ReadonlyMap<string, unknown>> {
  const order = await newOrder(base);
  const { buyer, supplier, ledgerId } = order;
  const get = async (path: string, by: Party = supplier): Promise<Fields> => (await done(base, 'GET', path, by)).body;
  const newest = async (): Promise<Fields> => {
    const path = `/v1/ledgers/${ledgerId}/events?order=desc&limit=1`;
    return (await done(base, 'GET', path, supplier)).rows('events')[0] ?? {};
  };
  const genesis = (await done(base, 'GET', `/v1/ledgers/${ledgerId}/events`, buyer)).rows('events')[0];
  const master = await newMaster(order, supplier, 'PO-2026-0001');
  const other = await newMaster(order, supplier, 'PO-2026-0002');

  const delivered = {
    'x-delivery-chain': JSON.stringify([{ actor_id: supplier.actorId, actor_type: 'service', role: 'PICKER' }]),
  };
  await append(master, supplier, 'GOODS_PICKED', { cartons: 12 }, { headers: delivered });
  const chained = await newest();
  await append(other, supplier, 'GOODS_PICKED', { cartons: 7 });
  await append(master, supplier, 'SHIPMENT_DISPATCHED', { carrier: 'BlueDart' });
  const event = await newest();

  const carrier = await newParty(base);
  const access = { role: 'OPS', permissions: { access: 'write' } };
  const signed = { traceledger_master_id: master.uuid, delegate_actor_id: carrier.actorId, ...access };
  await done(base, 'POST', '/v1/delegation/master', {
    headers: signedBy(supplier, 'MASTER_DELEGATION_GRANTED', ledgerId, signed),
    body: { master_id: master.uuid, delegate_actor_id: carrier.actorId, ...access },
  });
  const { members } = await get(`/v1/delegation/master?master_id=${master.uuid}`);
  const segment = (await done(base, 'GET', `/v1/ledgers/${ledgerId}/events`, carrier))
    .rows('events')
    .map(({ seq, master_seq, event_type }) => ({ seq, master_seq, event_type }));

  const { frlLedgerId } = await newOrganization(base, supplier);
  const device = await newDevice(base, { keyed: true, owner: supplier });
  const root = '/v1/entities/root-ledger';
  const arl = await done(base, 'POST', root, { headers: entityRequest(device, 'POST', root, '') });

  const keys = `/v1/actors/${buyer.actorId}/keys`;
  const enrolled = { public_key: newKeyPair().publicKey, algorithm: 'Ed25519' };
  await done(base, 'POST', keys, buyer, enrolled);
  await done(base, 'PATCH', `${keys}/key-1/revoke`, buyer, { reason: 'device lost' });
  return new Map<string, unknown>([
    ['actor', await get(`/v1/resolve/${supplier.svcId}`)],
    ['ledger', await get(`/v1/ledgers/${ledgerId}`)],
    ['FRL', await get(`/v1/ledgers/${frlLedgerId}`)],
    ['ARL', arl.body],
    ['master', await get(`/v1/traceledger/master/${master.uuid}`)],
    ['event', event],
    ['seal', genesis],
    ['grant', members],
    ['delivery chain', { payload: chained.payload, actor_sig_payload: chained.actor_sig_payload }],
    ['segment', segment],
    ['head', headOf(await newest())],
    ['kid', (await get(`/v1/resolve/${buyer.svcId}`)).keys],
    ['phase', await get('/.well-known/svc-authority')],
  ]);
}

function headOf({ seq, hash }: Fields): Fields {
  return { seq, hash };
}
