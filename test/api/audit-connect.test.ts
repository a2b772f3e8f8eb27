import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { historyOf, tracked } from '../support/access-events.ts';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { newParty, type Party } from '../support/parties.ts';

const { node, order, master } = await nodeWithMaster({ keyed: false });
const stranger = await newParty(node.base, { keyed: false });

const nowhere = randomUUID();
const ledgerPath = (ledgerId: string) => `/v1/ledgers/${ledgerId}`;
const appendPath = (uuid: string) => `/v1/traceledger/master/${uuid}/events`;

/** What is called, by whom, and the REST method, path, status and ledger that its caller then finds. */
const calls: [
  string,
  () => { method: string; by: Party; body: object; listed: readonly (string | number | null)[] },
][] = [
  [
    'a stranger’s look at a ledger',
    () => ({
      method: 'LedgerService/GetLedger',
      by: stranger,
      body: { ledgerId: order.ledgerId },
      listed: ['GET', ledgerPath(order.ledgerId), 404, order.ledgerId],
    }),
  ],
  [
    'a look at a ledger that is not there',
    () => ({
      method: 'LedgerService/GetLedger',
      by: order.buyer,
      body: { ledgerId: nowhere },
      listed: ['GET', ledgerPath(nowhere), 404, nowhere],
    }),
  ],
  [
    'a party’s look',
    () => ({
      method: 'LedgerService/GetLedger',
      by: order.buyer,
      body: { ledgerId: order.ledgerId },
      listed: ['GET', ledgerPath(order.ledgerId), 200, order.ledgerId],
    }),
  ],
  [
    'a bad limit',
    () => ({
      method: 'LedgerService/ListLedgerEvents',
      by: order.buyer,
      body: { ledgerId: order.ledgerId, limit: 0 },
      listed: ['GET', `${ledgerPath(order.ledgerId)}/events`, 400, order.ledgerId],
    }),
  ],
  [
    'a stranger’s append',
    () => ({
      method: 'MasterService/AppendEvent',
      by: stranger,
      body: { uuid: master.uuid, eventType: 'A', payload: '{}' },
      // A stranger’s history does not say under which ledger the master stands.
      listed: ['POST', appendPath(master.uuid), 404, null],
    }),
  ],
  [
    'an append of a reserved type',
    () => ({
      method: 'MasterService/AppendEvent',
      by: order.supplier,
      body: { uuid: master.uuid, eventType: 'GENESIS', payload: '{}' },
      listed: ['POST', appendPath(master.uuid), 400, order.ledgerId],
    }),
  ],
];

test.each(calls)('over Connect, %s leaves one event, by its REST method and path', async (_name, call) => {
  const { method, by, body, listed } = call();
  const before = await historyOf(node.base, by);
  const { answer, requestId } = await tracked(node.base, 'POST', `/svc.v1.${method}`, { headers: by.bearer, body });
  expect(answer.status).toBe(listed[2]);
  const after = await historyOf(node.base, by);
  expect(after).toHaveLength(before.length + 1);
  expect(after[0]).toMatchObject({ request_id: requestId });
  const [{ method: verb, path, response_status: status, ledger_id: ledgerId } = {}] = after;
  expect([verb, path, status, ledgerId]).toEqual(listed);
});

test('over Connect, a call without a caller leaves nothing', async () => {
  const before = await historyOf(node.base, order.buyer);
  const body = { ledgerId: order.ledgerId };
  const { answer } = await tracked(node.base, 'POST', '/svc.v1.LedgerService/GetLedger', { headers: {}, body });
  expect(answer.status).toBe(401);
  expect(await historyOf(node.base, order.buyer)).toEqual(before);
});
