import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { newOrganization } from '../support/organizations.ts';
import { newMaster, newOrder, newParty } from '../support/parties.ts';
import { expectRefused, type Fields, rest } from '../support/parties-rest.ts';
import { runNode } from '../support/running-node.ts';

test('a refused ledger, master or organization of a body is named in the details, existing or not', async () => {
  await using node = await runNode();
  const { base } = node;
  const order = await newOrder(base, { keyed: false });
  const master = await newMaster(order);
  const stranger = await newParty(base, { keyed: false });
  const { organizationId } = await newOrganization(base, order.buyer);
  const grant = { delegate_actor_id: order.buyer.actorId, role: 'BROKER' };
  const revocation = { delegate_actor_id: order.buyer.actorId };
  const cases: [method: string, path: string, field: string, body: Fields, existing: string][] = [
    ['POST', '/v1/traceledger/master', 'ledger_id', { business_ref: 'PO', scope: 'ORDER' }, order.ledgerId],
    ['POST', '/v1/delegation/ledger', 'ledger_id', grant, order.ledgerId],
    ['POST', '/v1/delegation/master', 'master_id', grant, master.uuid],
    ['POST', '/v1/delegation/organization', 'organization_id', grant, organizationId],
    ['POST', '/v1/webhooks', 'ledger_id', { url: 'https://hooks.example/' }, order.ledgerId],
    ['PATCH', '/v1/delegation/ledger', 'ledger_id', revocation, order.ledgerId],
    ['PATCH', '/v1/delegation/master', 'master_id', revocation, master.uuid],
    ['PATCH', '/v1/delegation/organization', 'organization_id', revocation, organizationId],
  ];
  for (const [method, path, field, body, existing] of cases) {
    for (const id of [randomUUID(), existing]) {
      const answer = await rest(base, method, path, stranger, { ...body, [field]: id });
      expectRefused(answer, 404, 'not_found');
      expect((answer.body.error as { details: Fields }).details).toEqual({ field });
    }
  }
});
