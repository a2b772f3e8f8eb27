import { expect, test } from 'vitest';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { append, eventsOf, newParty } from '../support/parties.ts';
import { done, expectRefused } from '../support/parties-rest.ts';

const { base, order, master } = await nodeWithMaster({ keyed: false });

test('no event of a delegate is dated at or after the end of its grant, however many appends it sends', async () => {
  const delegate = await newParty(base, { keyed: false });
  const expires_at = new Date(Date.now() + 700).toISOString();
  const body = { actor_id: delegate.actorId, access: 'write', expires_at };
  await done(base, 'POST', `/v1/traceledger/master/${master.uuid}/access`, order.buyer, body);
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    const ids: string[] = [];
    while (Date.now() < Date.parse(expires_at) + 60) {
      const answer = await append(master, delegate, 'AROUND', { lane });
      if (answer.status === 200) ids.push(answer.text('event_id'));
      else expectRefused(answer, 403, 'access_expired');
    }
    return ids;
  });
  const accepted = (await Promise.all(lanes)).flat();
  const events = (await eventsOf(base, order.buyer, order.ledgerId)).filter(
    ({ event_type }) => event_type === 'AROUND',
  );
  expect(accepted.length).toBeGreaterThan(0);
  expect(events.map(({ id }) => id).toSorted()).toEqual(accepted.toSorted());
  for (const { created_at } of events) expect(String(created_at) < expires_at).toBe(true);
});
