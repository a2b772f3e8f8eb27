import { createClient } from '../client/client.ts';
import type { SandboxTarget, StoryOrder } from './party.ts';
import { check, refused, type Step, step } from './steps.ts';

/** The buyer opens a ledger with the supplier, and the supplier creates a master for the shipment. */
export function* opening(order: StoryOrder, target: SandboxTarget): Iterable<Step> {
  const { supplier, buyer, carrier } = order;
  yield step('the buyer opens a ledger with the supplier', async () => {
    const ledger = await buyer.client.createLedger({ supplierSvcId: supplier.svcId });
    order.ledgerId = ledger.id;
    const { ledgers } = await supplier.client.listLedgers({ ledgerType: 'ORDER' });
    check(
      ledgers.some(({ id }) => id === order.ledgerId),
      'the supplier does not see it',
    );
    return order.ledgerId;
  });
  yield step('a stranger is told that there is no such ledger', async () => {
    await refused(carrier.client.getLedger({ ledgerId: order.ledgerId }), 'not_found');
  });
  yield step('an unsigned call of an actor with keys is refused', async () => {
    const master = { ledgerId: order.ledgerId, businessRef: 'PO-2026-0042', scope: 'ORDER' };
    await using unsigned = createClient({ ...target, apiKey: supplier.apiKey });
    await refused(unsigned.createMaster(master), 'signature_required');
  });
  yield step('the supplier creates a master for the shipment, signed', async () => {
    const master = { ledgerId: order.ledgerId, businessRef: 'PO-2026-0042', scope: 'ORDER' };
    order.shipment = (await supplier.client.createMaster(master)).uuid;
    return order.shipment;
  });
}

/** The supplier records events. A repeated call and a forged signature write nothing. */
export function* recording(order: StoryOrder, target: SandboxTarget): Iterable<Step> {
  const { supplier, buyer } = order;
  yield step('the supplier records PRODUCTION_STARTED', async () => {
    const recorded = await supplier.client.appendEvent({
      uuid: order.shipment,
      eventType: 'PRODUCTION_STARTED',
      payload: { line: 'A', planned_quantity: 500 },
    });
    order.startedHash = recorded.hash;
    return `seq ${recorded.seq}`;
  });
  yield step('the same call again, with its idempotency key, writes nothing new', async () => {
    const event = { uuid: order.shipment, eventType: 'ERP_SYNC', payload: { batch: 'B-7' } };
    const idempotencyKey = `sandbox-${order.shipment}`;
    let replayed = false;
    const first = await supplier.client.appendEvent(event, { idempotencyKey });
    const again = await supplier.client.appendEvent(event, {
      idempotencyKey,
      onAnswer: (answer) => {
        replayed = answer.replayed;
      },
    });
    check(again.eventId === first.eventId && replayed, 'a second event was written');
  });
  yield step('a signature by somebody else’s key is refused', async () => {
    const signer = { ...buyer.signer, keyId: supplier.signer.keyId ?? '' };
    await using forger = createClient({ ...target, apiKey: supplier.apiKey, signer });
    const forged = forger.appendEvent({ uuid: order.shipment, eventType: 'FORGED', payload: {} });
    await refused(forged, 'invalid_signature');
  });
}
