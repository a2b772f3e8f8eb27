import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { newMaster, newOrder, newParty } from '../support/parties.ts';
import { expectRefused, type Fields, rest } from '../support/parties-rest.ts';
import { runNode } from '../support/running-node.ts';

test('a ledger, master or organization that a body names in vain is named in the details, whether it exists or not', async () => {
  await using node = await runNode();
  const { base } = node;
  const order = await newOrder(base);
  const master = await newMaster(order);
  const stranger = await newParty(base, { keyed: false });
  const grant = { delegate_actor_id: order.buyer.actorId, role: 'BROKER' };
  const cases: [path: string, field: string, body: Fields, existing: string | null][] = [
    ['/v1/traceledger/master', 'ledger_id', { business_ref: 'PO', scope: 'ORDER' }, order.ledgerId],
    ['/v1/delegation/ledger', 'ledger_id', grant, order.ledgerId],
    ['/v1/delegation/master', 'master_id', grant, master.uuid],
    ['/v1/delegation/organization', 'organization_id', grant, null],
  ];
  for (const [path, field, body, existing] of cases) {
    for (const id of [randomUUID(), ...(existing === null ? [] : [existing])]) {
      const answer = await rest(base, 'POST', path, { headers: stranger.bearer, body: { ...body, [field]: id } });
      expectRefused(answer, 404, 'not_found');
      expect((answer.body.error as { details: Fields }).details).toEqual({ field });
    }
  }
});
