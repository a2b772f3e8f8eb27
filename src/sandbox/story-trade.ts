import { createClient } from '../client/client.ts';
import type { SandboxTarget, StoryOrder } from './party.ts';
import { check, refused, type Step } from './steps.ts';

/** The buyer opens a ledger with the supplier, and the supplier creates a master for the shipment. */
export function* opening(order: StoryOrder): Iterable<Step> {
  const { supplier, buyer, carrier } = order;
  yield {
    title: 'the buyer opens a ledger with the supplier',
    run: async () => {
      const ledger = await buyer.client.createLedger({ supplierSvcId: supplier.svcId });
      order.ledgerId = ledger.id;
      const { ledgers } = await supplier.client.listLedgers({ ledgerType: 'ORDER' });
      check(
        ledgers.some(({ id }) => id === order.ledgerId),
        'the supplier does not see it',
      );
      return order.ledgerId;
    },
  };
  yield {
    title: 'a stranger is told that there is no such ledger',
    run: async () => {
      await refused(carrier.client.getLedger({ ledgerId: order.ledgerId }), 'not_found');
    },
  };
  yield {
    title: 'an unsigned call of an actor with keys is refused',
    run: async () => {
      const master = { ledgerId: order.ledgerId, businessRef: 'PO-2026-0042', scope: 'ORDER' };
      await refused(supplier.unsigned.createMaster(master), 'signature_required');
    },
  };
  yield {
    title: 'the supplier creates a master for the shipment, signed',
    run: async () => {
      const made = await supplier.client.createMaster({
        ledgerId: order.ledgerId,
        businessRef: 'PO-2026-0042',
        scope: 'ORDER',
      });
      order.shipment = made.uuid;
      return order.shipment;
    },
  };
}

/** The supplier records events. A repeated call and a forged signature write nothing. */
export function* recording(order: StoryOrder, target: SandboxTarget): Iterable<Step> {
  const { supplier, buyer } = order;
  yield {
    title: 'the supplier records PRODUCTION_STARTED',
    run: async () => {
      const recorded = await supplier.client.appendEvent({
        uuid: order.shipment,
        eventType: 'PRODUCTION_STARTED',
        payload: { line: 'A', planned_quantity: 500 },
      });
      order.startedHash = recorded.hash;
      return `seq ${recorded.seq}`;
    },
  };
  yield {
    title: 'the same call again, with its idempotency key, writes nothing new',
    run: async () => {
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
    },
  };
  yield {
    title: 'a signature by somebody else’s key is refused',
    run: async () => {
      const forger = createClient({
        ...target,
        apiKey: supplier.apiKey,
        signer: { ...buyer.signer, keyId: supplier.signer.keyId ?? '' },
      });
      try {
        const forged = forger.appendEvent({ uuid: order.shipment, eventType: 'FORGED', payload: {} });
        await refused(forged, 'invalid_signature');
      } finally {
        await forger.close();
      }
    },
  };
}
