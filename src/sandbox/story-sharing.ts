import type { StoryOrder } from './party.ts';
import { check, refused, type Step, step } from './steps.ts';

/** Carrier, auditor and bank get access, and the carrier loses it again. `now`: milliseconds since 1970. */
export function* sharing(order: StoryOrder, now: () => number): Iterable<Step> {
  const { supplier, buyer, auditor, carrier, bank } = order;
  yield step('the supplier lets the carrier write to this master', async () => {
    const granted = await supplier.client.grantMasterDelegation({
      masterId: order.shipment,
      delegateActorId: carrier.actorId,
      role: 'AGENT',
      permissions: { access: 'write' },
    });
    return `link ${granted.linkId}`;
  });
  yield step('the carrier records SHIPMENT_DISPATCHED, caused by the production', async () => {
    const recorded = await carrier.client.appendEvent({
      uuid: order.shipment,
      eventType: 'SHIPMENT_DISPATCHED',
      payload: { carrier: 'BlueDart', pallets: 4, caused_by_hash: order.startedHash },
    });
    const { events } = await buyer.client.listMasterEvents({ uuid: order.shipment, eventId: recorded.eventId });
    check(events[0]?.causedByHash === order.startedHash, 'the cause is not shown');
    return `seq ${recorded.seq}`;
  });
  yield step('the buyer lets the auditor read the ledger', async () => {
    const grant = { ledgerId: order.ledgerId, delegateActorId: auditor.actorId, role: 'AUDITOR' };
    await buyer.client.grantLedgerDelegation(grant);
  });
  yield step('the auditor reads everything and finds it whole', async () => {
    const read = await auditor.client.listLedgerEvents({ ledgerId: order.ledgerId, verify: 'signatures' });
    check(read.integrity?.verified === true, 'the integrity block says otherwise');
    return `${read.count} events`;
  });
  yield step('the auditor may not write', async () => {
    const event = { uuid: order.shipment, eventType: 'AUDIT_NOTE', payload: {} };
    await refused(auditor.client.appendEvent(event), 'permission_denied');
  });
  yield step('the supplier creates a master for the invoice and records INVOICE_RAISED', async () => {
    const master = { ledgerId: order.ledgerId, businessRef: 'INV-2026-0042', scope: 'PROCESS' };
    order.invoice = (await supplier.client.createMaster(master)).uuid;
    const payload = { amount: 12_500.5, currency: 'EUR' };
    const raised = { uuid: order.invoice, eventType: 'INVOICE_RAISED', payload };
    return `seq ${(await supplier.client.appendEvent(raised)).seq}`;
  });
  yield step('the supplier lets the bank read the invoice, for a day', async () => {
    const expiresAt = new Date(now() + 86_400_000).toISOString();
    const grant = { uuid: order.invoice, actorId: bank.actorId, access: 'read', expiresAt };
    await supplier.client.grantMasterAccess(grant);
    return `until ${expiresAt}`;
  });
  yield step('the bank sees the invoice, and of the shipment nothing', async () => {
    const read = await bank.client.listMasterEvents({ uuid: order.invoice });
    check(
      read.events.some(({ eventType }) => eventType === 'INVOICE_RAISED'),
      'the invoice is not shown',
    );
    await refused(bank.client.getMaster({ uuid: order.shipment }), 'not_found');
    const segment = await bank.client.listLedgerEvents({ ledgerId: order.ledgerId });
    check(
      segment.events.every(({ masterId }) => masterId === null || masterId === order.invoice),
      'it sees more',
    );
    check(
      segment.events.some(({ eventType }) => eventType === 'INVOICE_RAISED'),
      'of the ledger it does not see the invoice',
    );
    return `${segment.count} events of the ledger`;
  });
  yield step('the supplier takes the carrier’s access back', async () => {
    await supplier.client.revokeMasterDelegation({ masterId: order.shipment, delegateActorId: carrier.actorId });
  });
  yield step('the carrier can neither write nor read any more', async () => {
    const late = { uuid: order.shipment, eventType: 'SHIPMENT_DELIVERED', payload: {} };
    await refused(carrier.client.appendEvent(late), 'not_found', 'permission_denied');
    await refused(carrier.client.listMasterEvents({ uuid: order.shipment }), 'not_found');
  });
  yield step('the proof of delegation shows the grant and its end', async () => {
    const proof = await buyer.client.getDelegationProof({ masterId: order.shipment });
    const types = proof.events.map(({ eventType }) => eventType);
    check(types.join() === 'MASTER_DELEGATION_GRANTED,MASTER_DELEGATION_REVOKED', `it shows ${types.join(', ')}`);
    check(proof.integrity?.verified === true, 'its integrity block says otherwise');
    return types.join(', ');
  });
}
